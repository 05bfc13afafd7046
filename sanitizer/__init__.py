"""Memory safety: alignments and boundaries under compute-sanitizer, or AddressSanitizer on a CPU."""
