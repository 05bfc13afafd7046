// Faults that the tools must find in the run that vouches for a kernel: over_read one byte behind an
// allocation, misaligned an int at an odd address.

extern "C" int kernelgate_control_over_read(const volatile unsigned char* bytes, long count) {
  return bytes[count];
}

extern "C" int kernelgate_control_misaligned(const volatile unsigned char* bytes, long) {
  return *reinterpret_cast<const volatile int*>(bytes + 1);
}
