// The compiled kernels as data. Hidden: libraries loaded side by side must each see their own.
asm(".section .rodata\n"
    ".global grouped_cubin\n"
    ".hidden grouped_cubin\n"
    ".balign 64\n"
    "grouped_cubin:\n"
    ".incbin \"" GROUPED_CUBIN
    "\"\n"
    ".previous\n");
