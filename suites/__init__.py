"""What is measured: pytest-benchmark files that put kernels on problems."""
