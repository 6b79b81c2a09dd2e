"""A night: the machine is checked, a bench run and kept, and only then held against the night before and baseline."""
