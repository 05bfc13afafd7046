"""Output buffers that show what a kernel left unwritten, and what it wrote beside them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

# NaNs that no kernel stores: the contract's only ones are 0x7FFF and 0x7FFFFFFF.
PATTERN = 0x7E5A
STATE_PATTERN = 0x7FBADBAD
GUARD_ELEMENTS = 64


@dataclass(frozen=True, kw_only=True)
class Poisoned:
    """An fp16 output of the wanted shape inside a larger poisoned buffer."""

    buffer: torch.Tensor
    out: torch.Tensor

    def unwritten(self) -> int:
        """Elements of the output that still hold the poison."""
        return int((self.out.view(torch.int16) == PATTERN).sum())

    def strayed(self) -> int:
        """Elements beside the output that no longer hold it."""
        raw = self.buffer.view(torch.int16)
        edges = torch.cat([raw[:GUARD_ELEMENTS], raw[-GUARD_ELEMENTS:]])
        return int((edges != PATTERN).sum())


def output(shape: tuple[int, ...], device: torch.device | str) -> Poisoned:
    """A contiguous, 16-byte aligned fp16 tensor of `shape` full of poison, with guards on both sides."""
    elements = int(torch.Size(shape).numel())
    raw = torch.full((elements + 2 * GUARD_ELEMENTS,), PATTERN, dtype=torch.int16, device=device)
    buffer = raw.view(torch.float16)
    return Poisoned(buffer=buffer, out=buffer[GUARD_ELEMENTS:-GUARD_ELEMENTS].view(shape))


def state(shape: tuple[int, ...], device: torch.device | str) -> torch.Tensor:
    """A contiguous fp32 tensor full of poison, for partials."""
    return torch.full(shape, STATE_PATTERN, dtype=torch.int32, device=device).view(torch.float32)


def unwritten_state(tensor: torch.Tensor) -> int:
    """Elements of an fp32 tensor that still hold the poison."""
    return int((tensor.view(torch.int32) == STATE_PATTERN).sum())


def fill(tensors: tuple[torch.Tensor, ...]) -> None:
    """Overwrite workspace tensors with NaN, as tiny numbers would vanish in a sum: their contents must not
    matter.
    """
    for tensor in tensors:
        tensor.view(torch.uint8).fill_(0xFF)
