# CUDA kernels: build/libgpuagg_kernels.a, unit tests and benchmark.  Without nvcc the project is CPU-only.
