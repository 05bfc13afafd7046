"""Calls of an emulated GPU: one library holds the kernels of one architecture."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from fixtures.inputs import Inputs
from regression.emulation import memory

WORKSPACE_ROWS = 8
WIDE_BYTES = 16


class EmulatedError(Exception):
    """The kernels can't go on: threads wait for each other for ever, or an access is misaligned."""


class _Call(ctypes.Structure):
    """As `SimtCall` in simt/grid.cc."""

    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("q", "k", "v", "block_table", "row_lens")],
        *[(name, ctypes.c_void_p) for name in ("acc", "max_sum", "out")],
        *[(name, ctypes.c_longlong) for name in ("k_block", "k_token", "v_block", "v_token")],
        *[(name, ctypes.c_int) for name in ("heads", "head_dim", "rows", "page", "capacity", "acc_rows")],
        *[(name, ctypes.c_float) for name in ("score_scale", "v_scale")],
        *[(name, ctypes.c_int) for name in ("wide_query", "wide_loads", "write_unused", "reverse")],
    ]


@dataclass(frozen=True, kw_only=True)
class States:
    """What one run left: fp32 acc [S, rows, H, D] and max_sum [S, rows, H, 2], fp16 out [R, H, D]."""

    acc: Tensor
    max_sum: Tensor
    out: Tensor


class Emulator:
    """The kernels of one architecture, compiled by `compiler.build`. OSError when it isn't such a library."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library.absolute()))
        try:
            self._library.simt_run.restype = ctypes.c_char_p
            size = int(self._library.simt_call_bytes())
        except AttributeError as error:
            raise OSError(f"{library} is no emulated kernel") from error
        if size != ctypes.sizeof(_Call):
            raise OSError(f"{library} was compiled by another version of this suite")
        self.arch = f"sm_{self._library.simt_arch()}"
        self.splits = int(self._library.simt_splits())
        self.knows_launch = bool(self._library.simt_knows_launch())

    def watch_signals(self) -> None:
        """Have a signal that ends this process say first which kernel, block and thread it came from."""
        self._library.simt_watch_signals()

    def shared_bytes(self, heads: int, dim: int, rows: int) -> int:
        """Shared memory of the split kernel that takes so many query rows."""
        return int(self._library.simt_shared_bytes(heads, dim, rows))

    def debug(self, inputs: Inputs, *, reverse: bool = False) -> States:
        """The debug operation, which also writes splits without a tile, then the combine of what it wrote.

        `reverse` runs the threads of each block in the opposite order. EmulatedError when they can't go on.
        """
        return self._run(inputs, inputs.q.shape[0], write_unused=True, reverse=reverse)

    def product(self, inputs: Inputs, *, reverse: bool = False) -> States:
        """The product operation, on a workspace for 8 rows that is full of NaN."""
        return self._run(inputs, WORKSPACE_ROWS, write_unused=False, reverse=reverse)

    def _run(self, inputs: Inputs, acc_rows: int, *, write_unused: bool, reverse: bool) -> States:
        rows, heads, dim = inputs.q.shape
        shape = (self.splits, acc_rows, heads)
        states = States(
            acc=memory.poisoned((*shape, dim), torch.float32),
            max_sum=memory.poisoned((*shape, 2), torch.float32),
            out=memory.poisoned((rows, heads, dim), torch.float16),
        )
        call = _call(inputs, states)
        call.acc_rows, call.write_unused, call.reverse = acc_rows, int(write_unused), int(reverse)
        message = self._library.simt_run(ctypes.byref(call))
        if message is not None:
            raise EmulatedError(message.decode())
        return states


def _call(inputs: Inputs, states: States) -> _Call:
    """The arguments that the product's launch derives from a call (kernels/src/cuda/export.cc)."""
    rows, heads, dim = inputs.q.shape
    call = _Call()
    names = ("q", "k", "v", "block_table", "row_lens", "acc", "max_sum", "out")
    tensors = (*inputs.tensors, states.acc, states.max_sum, states.out)
    for name, tensor in zip(names, tensors, strict=True):
        setattr(call, name, tensor.data_ptr())
    call.k_block, call.k_token = _strides(inputs.k_cache)
    call.v_block, call.v_token = _strides(inputs.v_cache)
    call.heads, call.head_dim, call.rows = heads, dim, rows
    call.page = inputs.k_cache.shape[1]
    call.capacity = inputs.block_table.numel() * call.page
    call.score_scale = float(_fp32(inputs.softmax_scale) * _fp32(inputs.k_scale))
    call.v_scale = inputs.v_scale
    call.wide_query = int(inputs.q.data_ptr() % WIDE_BYTES == 0)
    strides = (call.k_block, call.k_token, call.v_block, call.v_token)
    call.wide_loads = int(all(stride % WIDE_BYTES == 0 for stride in strides))
    return call


def _strides(cache: Tensor) -> tuple[int, int]:
    """Bytes between pages, of which a single one has no next, and between tokens."""
    return 0 if cache.shape[0] == 1 else cache.stride(0), cache.stride(1)


def _fp32(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float32)
