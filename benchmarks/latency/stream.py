"""A kernel that only reads: the floor under every kernel that must read the same bytes."""

from __future__ import annotations

from collections.abc import Callable

import torch

WORDS = 4096  # int32 words that one program reads at a time: 16 KiB
PROGRAMS_PER_MULTIPROCESSOR = 4


def reader(device: torch.device) -> Callable[[torch.Tensor], object]:
    """A function that reads a contiguous uint8 tensor once; RuntimeError without Triton."""
    try:
        from benchmarks.latency import stream_kernel
    except ImportError as error:
        raise RuntimeError("the streaming read needs triton: install it") from error
    programs = PROGRAMS_PER_MULTIPROCESSOR * torch.cuda.get_device_properties(device).multi_processor_count
    sums = torch.empty(programs, dtype=torch.int32, device=device)

    def read(data: torch.Tensor) -> None:
        words = data.view(-1).view(torch.int32)
        stream_kernel.read[(programs,)](words, sums, words.numel(), WORDS=WORDS, num_warps=8)

    return read
