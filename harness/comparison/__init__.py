"""The parts of `harness.compare`: its records, the environments, the rows, the test, what is said beside a word."""
