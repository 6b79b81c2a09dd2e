"""How kernels are measured, kept and compared. Knows no kernel by name."""
