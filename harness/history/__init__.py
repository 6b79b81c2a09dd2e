"""Many runs in time order: read fast, held against each other by device, the newest judged as `compare` does."""
