// Faults that the tools must find in the run that vouches for a kernel. Every loaded value is stored: a
// compiler drops what nobody uses. Each takes (in, out, count of 4-byte elements) and runs as one block of 64
// threads.

extern "C" __global__ void kernelgate_control_memcheck(const float* in, float* out, int count) {
  out[threadIdx.x % count] = in[count + threadIdx.x];  // behind the allocation
}

extern "C" __global__ void kernelgate_control_racecheck(const float* in, float* out, int count) {
  __shared__ float shared[64];
  shared[threadIdx.x] = in[threadIdx.x % count];
  out[threadIdx.x % count] = shared[(threadIdx.x + 33) % 64];  // another warp's element, no barrier
}

extern "C" __global__ void kernelgate_control_initcheck(const float* in, float* out, int count) {
  out[threadIdx.x % count] = in[threadIdx.x % count];  // the host never wrote `in`
}

extern "C" __global__ void kernelgate_control_synccheck(const float* in, float* out, int count) {
  // Threads 16 to 31 wait under a mask that doesn't hold them.
  if (threadIdx.x < 32) __syncwarp(0x0000FFFFu);
  out[threadIdx.x % count] = in[threadIdx.x % count];
}
