"""What `python -m reports` makes of runs: a verb a file (add a file to add one)."""
