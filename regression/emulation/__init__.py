"""The CUDA kernels' own sources on an emulated GPU, against the host backend: `regression emulate`."""
