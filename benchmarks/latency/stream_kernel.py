"""The Triton source of the streaming read. Imported only where Triton is installed."""

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def read(words, sums, count, WORDS: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Sum `count` int32 words, WORDS at a time, each program its share; one partial sum per program."""
    program = tl.program_id(0)
    total = tl.zeros((WORDS,), dtype=tl.int32)
    for start in range(program * WORDS, count, tl.num_programs(0) * WORDS):
        at = start + tl.arange(0, WORDS)
        total += tl.load(words + at, mask=at < count, other=0)
    tl.store(sums + program, tl.sum(total))
