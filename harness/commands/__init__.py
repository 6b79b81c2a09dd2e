"""What `python -m harness` does with the store: a verb a file (add a file to add one)."""
