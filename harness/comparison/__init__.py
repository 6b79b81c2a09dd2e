"""What `harness.compare` is made of, what a command line asks of it, and how its words are shown on a terminal."""
