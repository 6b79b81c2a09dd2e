"""What can be measured: the CUDA and C++ kernels, how they are built, loaded and registered."""
