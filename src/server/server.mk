# The GPU server: build/gpuagg-server, installed beside the extension's library where nvcc is present.
