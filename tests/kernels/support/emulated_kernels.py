"""The CUDA kernels on a CPU: compiles the product's own device sources for an emulated GPU, and runs them."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import torch

SIMT = Path(__file__).resolve().parents[1] / "simt"
KERNELS = Path(__file__).resolve().parents[3] / "kernels"
WORKSPACE_ROWS = 8


class SplitArguments(ctypes.Structure):
    """As in kernels/src/cuda/launch.h."""

    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("q", "k", "v", "block_table", "row_lens", "acc", "max_sum")],
        *[(name, ctypes.c_longlong) for name in ("k_block", "k_token", "v_block", "v_token")],
        *[(name, ctypes.c_int) for name in ("rows", "page", "capacity", "acc_rows")],
        *[(name, ctypes.c_float) for name in ("score_scale", "v_scale")],
        *[(name, ctypes.c_int) for name in ("wide_query", "wide_loads", "write_unused")],
    ]


class CombineArguments(ctypes.Structure):
    """As in kernels/src/cuda/launch.h."""

    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("acc", "max_sum", "row_lens", "out")],
        *[(name, ctypes.c_int) for name in ("rows", "capacity", "acc_rows")],
    ]


def build(arch: int, folder: Path, *, kernels: Path = KERNELS) -> Emulator:
    """Compiles the kernels of sm_<arch> for the CPU, from a kernels/ folder."""
    library = folder / f"simt-{arch}.so"
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    command = [
        compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing",
        "-U_FORTIFY_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-psabi",
        f"-DGROUPED_SM={arch}", "-include", "simt.h",
        f"-I{SIMT}", f"-I{kernels / 'include'}", f"-I{kernels / 'src'}",
        str(SIMT / "simt.cc"), str(SIMT / "grid.cc"), "-o", str(library),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    return Emulator(library)


class Emulator:
    """The kernels of one architecture. `reverse` runs the threads of a block in the opposite order."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self.splits = int(self._library.simt_splits())

    def shared_bytes(self, heads: int, dim: int, rows: int) -> int:
        """Shared memory of the split kernel that takes so many query rows."""
        return int(self._library.simt_shared_bytes(heads, dim, rows))

    def partials(self, problem: Any, *, reverse: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """What the debug operation writes."""
        rows, heads, dim = problem.q.shape
        buffers = _poisoned((self.splits, rows, heads), dim)
        self._split(problem, *buffers, write_unused=True, reverse=reverse)
        return buffers

    def attention(self, problem: Any, *, reverse: bool = False) -> torch.Tensor:
        """What the product operation writes, over a workspace full of NaN."""
        rows, heads, dim = problem.q.shape
        acc, max_sum = _poisoned((self.splits, WORKSPACE_ROWS, heads), dim)
        self._split(problem, acc, max_sum, write_unused=False, reverse=reverse)
        out = torch.full(problem.q.shape, float("nan"), dtype=torch.float16)
        arguments = CombineArguments(
            acc.data_ptr(), max_sum.data_ptr(), problem.row_lens.data_ptr(), out.data_ptr(),
            rows, _capacity(problem), WORKSPACE_ROWS,
        )  # fmt: skip
        self._library.simt_combine(ctypes.byref(arguments), heads, dim, int(reverse))
        return out

    def _split(
        self, problem: Any, acc: torch.Tensor, max_sum: torch.Tensor, *, write_unused: bool, reverse: bool
    ) -> None:
        rows, heads, dim = problem.q.shape
        strides = [(cache.stride(0), cache.stride(1)) for cache in (problem.k_cache, problem.v_cache)]
        scale = torch.tensor(problem.softmax_scale, dtype=torch.float32) * torch.tensor(
            problem.k_scale, dtype=torch.float32
        )
        wide = all(stride % 16 == 0 for pair in strides for stride in pair)
        arguments = SplitArguments(
            *[tensor.data_ptr() for tensor in (*problem.tensors, acc, max_sum)],
            *strides[0], *strides[1],
            rows, problem.k_cache.shape[1], _capacity(problem), acc.shape[1],
            float(scale), problem.v_scale,
            int(problem.q.data_ptr() % 16 == 0), int(wide), int(write_unused),
        )  # fmt: skip
        self._library.simt_split(ctypes.byref(arguments), heads, dim, self.splits, int(reverse))


def _capacity(problem: Any) -> int:
    return int(problem.block_table.numel() * problem.k_cache.shape[1])


def _poisoned(shape: tuple[int, int, int], dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    nan = float("nan")
    return torch.full((*shape, dim), nan), torch.full((*shape, 2), nan)
