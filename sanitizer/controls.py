"""Positive controls: planted faults that a tool must find in the very run that vouches for a kernel."""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from artifacts.places import root
from grouped_attention import recipe, toolchain

PREFIX = "kernelgate_control_"
HOST = ("control:over_read", "control:misaligned")
FOLDER = Path(__file__).parent / "planted"
BYTES, THREADS, COUNT = 24, 64, 16
COMPILE_LIMIT_S = 120

Run = Callable[[str], str | None]


class ControlError(RuntimeError):
    """A control can't be built or launched; the text says why."""


def names(backend: str, tool: str) -> tuple[str, ...]:
    """The controls of a run, in order."""
    return HOST if backend == "host" else (f"control:{tool}",)


def build_host(folder: Path) -> Path:
    """The planted library, compiled as the instrumented build of the kernel is."""
    _, (*flags,) = recipe.VARIANTS["address"]
    library = folder / "control-host.so"
    source = FOLDER / "host.cc"
    prefix = f"-ffile-prefix-map={source.parents[1].parent}/="
    _run(
        [
            str(toolchain.find().cxx),
            "-shared",
            "-fPIC",
            "-O1",
            "-g",
            *flags,
            prefix,
            str(source),
            "-o",
            str(library),
        ]
    )
    return library


def build_cuda(folder: Path, arch: str) -> Path:
    """The planted kernels as a cubin of their own; needs NVRTC, no GPU."""
    cubin = folder / f"control-{arch}.cubin"
    script = root() / "kernels" / "cmake" / "nvrtc_compile.py"
    log = cubin.with_suffix(".txt")
    source = str(FOLDER / "device.cu")
    _run([sys.executable, str(script), source, "--arch", arch, "--cubin", str(cubin), "--log", str(log)])
    return cubin


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


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ControlError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise ControlError(
            f"{Path(command[0]).name} gave exit status {done.returncode}: {done.stderr[-400:]}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the planted kernels here, for a machine that has a GPU and no NVRTC."""
    parser = argparse.ArgumentParser(prog="python -m sanitizer.controls", description=main.__doc__)
    parser.add_argument("--arch", required=True)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="where control-ARCH.cubin goes"
    )
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    print(build_cuda(options.out, options.arch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
