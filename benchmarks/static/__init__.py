"""Static costs of compiled kernels: registers, spills, shared memory, code size, occupancy. Needs no GPU."""
