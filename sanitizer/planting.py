"""Positive controls, run: a planted fault by its name, in this process.

Apart from `sanitizer.controls`, so that a process that runs nothing else needs neither torch nor a compiler.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

PREFIX = "kernelgate_control_"
BYTES, THREADS, COUNT = 24, 64, 16

Run = Callable[[str], str | None]


class ControlError(RuntimeError):
    """A control can't be built or launched; the text says why."""


def runner(backend: str, binary: Path) -> Run:
    """What runs a control by name in this process."""
    return _host_runner(binary) if backend == "host" else _cuda_runner(binary)


def _host_runner(library: Path) -> Run:
    planted, libc = ctypes.CDLL(str(library)), ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p

    def run(name: str) -> str | None:
        function = getattr(planted, PREFIX + name.removeprefix("control:"))
        function(ctypes.c_void_p(libc.malloc(ctypes.c_size_t(BYTES))), ctypes.c_long(BYTES))
        return None

    return run


def _cuda_runner(cubin: Path) -> Run:
    import torch

    driver = ctypes.CDLL("libcuda.so.1")
    out = torch.zeros(COUNT, device="cuda")
    # Loaded as the product loads its kernels: a tool that can't see into such code must not find the fault.
    library, image, none = ctypes.c_void_p(), cubin.read_bytes(), ctypes.c_uint(0)
    _check(
        driver.cuLibraryLoadData(ctypes.byref(library), image, None, None, none, None, None, none),
        "cuLibraryLoadData",
    )

    def run(name: str) -> str | None:
        kernel, function = ctypes.c_void_p(), ctypes.c_void_p()
        symbol = (PREFIX + name.removeprefix("control:")).encode()
        _check(driver.cuLibraryGetKernel(ctypes.byref(kernel), library, symbol), "cuLibraryGetKernel")
        _check(driver.cuKernelGetFunction(ctypes.byref(function), kernel), "cuKernelGetFunction")
        source = torch.empty(COUNT, device="cuda")
        _launch(driver, function, source.data_ptr(), out.data_ptr())
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            return str(error).splitlines()[0]
        return None

    return run


def _launch(driver: ctypes.CDLL, function: ctypes.c_void_p, source: int, out: int) -> None:
    values = (ctypes.c_void_p(source), ctypes.c_void_p(out), ctypes.c_int(COUNT))
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    one = ctypes.c_uint(1)
    threads = ctypes.c_uint(THREADS)
    _check(
        driver.cuLaunchKernel(
            function, one, one, one, threads, one, one, ctypes.c_uint(0), None, pointers, None
        ),
        "cuLaunchKernel",
    )


def _check(status: int, what: str) -> None:
    if status != 0:
        raise ControlError(f"{what} gave CUDA error {status}")
