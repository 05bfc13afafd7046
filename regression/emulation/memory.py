"""Copies of tensors that end where memory ends: a read or write past the last element is a signal."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fixtures.inputs import Inputs

PAGE_BYTES = mmap.PAGESIZE
BASE_BYTES = 16  # what the kernels may assume of the bases of their tensors
NO_ACCESS = 0
# Copying more would touch memory that nothing else ever does: pages gigabytes apart.
LARGEST_BYTES = 1 << 28


def guarded(inputs: Inputs) -> Inputs:
    """The same call with each tensor in memory of its own; distances from a 16-byte boundary stay."""
    return replace(
        inputs,
        q=_copy(inputs.q, BASE_BYTES),
        k_cache=_copy(inputs.k_cache, BASE_BYTES),
        v_cache=_copy(inputs.v_cache, BASE_BYTES),
        block_table=_copy(inputs.block_table, inputs.block_table.itemsize),
        row_lens=_copy(inputs.row_lens, inputs.row_lens.itemsize),
    )


def poisoned(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A tensor full of NaN that ends where memory ends."""
    count = torch.Size(shape).numel() * dtype.itemsize
    return ending(count, BASE_BYTES).view(dtype).view(*shape).fill_(float("nan"))


def ending(count: int, align: int, past: int = 0) -> Tensor:
    """Bytes, uint8 [count], that begin `past` bytes past a multiple of `align`, as near the end as may be."""
    room = -(-(count + align) // PAGE_BYTES) * PAGE_BYTES
    mapped = mmap.mmap(-1, room + PAGE_BYTES)
    _forbid(mapped, room)
    offset = (room - count - past) // align * align + past
    return torch.frombuffer(mapped, dtype=torch.uint8, count=count, offset=offset)


def _copy(tensor: Tensor, align: int) -> Tensor:
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    count = (1 + sum((size - 1) * stride for size, stride in steps)) * tensor.itemsize
    if count > LARGEST_BYTES:
        return tensor
    old = tensor.as_strided((count // tensor.itemsize,), (1,), tensor.storage_offset()).view(torch.uint8)
    new = ending(count, align, tensor.data_ptr() % align).copy_(old)
    return new.view(tensor.dtype).as_strided(tensor.shape, tensor.stride())


def _forbid(mapped: mmap.mmap, offset: int) -> None:
    """Nobody may touch the page at this offset."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapped, offset))
    library = ctypes.CDLL(None, use_errno=True)
    if library.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE_BYTES), NO_ACCESS) != 0:
        raise OSError(ctypes.get_errno(), "mprotect failed")
