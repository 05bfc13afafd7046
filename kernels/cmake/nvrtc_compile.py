"""Compiles one CUDA source into a cubin with NVRTC, on a machine that needs neither a GPU nor a CUDA toolkit.

The headers go to NVRTC in memory, under the names that #include spells, and NVRTC runs in the root folder:
nothing outside the given folders can be included, and no path of the build machine gets into the cubin's line
tables, so the same sources give the same bytes in any folder.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import util
from pathlib import Path

PACKAGE = "nvidia-cuda-nvrtc-cu12"
PACKAGE_VERSION = "12.8.93"
SUPPORTED = (12, 8)  # NVRTC 13 can't compile for sm_70
HEADER_SUFFIXES = (".h", ".cuh")


class NvrtcError(RuntimeError):
    """NVRTC is missing, of the wrong version, or refused the source; the message says what to do."""


class Nvrtc:
    """The few calls of the NVRTC library that a compilation needs."""

    def __init__(self, library: Path) -> None:
        self._preload_builtins(library.parent)
        try:
            self._library = ctypes.CDLL(str(library))
        except OSError as error:
            raise NvrtcError(f"{library} can't be loaded: {error}; reinstall {PACKAGE}") from error
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    @staticmethod
    def _preload_builtins(folder: Path) -> None:
        # NVRTC opens this one by its bare name: loading it first works without LD_LIBRARY_PATH.
        for path in sorted(folder.glob("libnvrtc-builtins.so.*")):
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)

    def version(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def compile(
        self, name: str, source: bytes, headers: Mapping[str, bytes], options: Sequence[str]
    ) -> tuple[bytes, str]:
        """The cubin and the compiler's log; NvrtcError with the log when the source doesn't compile."""
        program = ctypes.c_void_p()
        names, texts = _strings([key.encode() for key in headers]), _strings(list(headers.values()))
        self._call(
            "nvrtcCreateProgram", ctypes.byref(program), source, name.encode(), len(headers), texts, names
        )
        try:
            arguments = _strings([option.encode() for option in options])
            with contextlib.chdir(os.sep):  # NVRTC writes the current folder into the line tables
                status = self._library.nvrtcCompileProgram(program, len(options), arguments)
            log = self._text(program, "ProgramLog")
            if status != 0:
                raise NvrtcError(f"{self._reason(status)} in {name} {' '.join(options)}\n{log}")
            return self._bytes(program, "CUBIN"), log
        finally:
            self._call("nvrtcDestroyProgram", ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> str:
        return self._bytes(program, what).rstrip(b"\0").decode(errors="replace")

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            raise NvrtcError(f"{function} failed: {self._reason(status)}")

    def _reason(self, status: int) -> str:
        return str(self._library.nvrtcGetErrorString(status).decode())


def _strings(values: Sequence[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(values))(*values)


def read_headers(folders: Sequence[Path]) -> dict[str, bytes]:
    """Every .h and .cuh below the folders, by its path relative to its folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.suffix in HEADER_SUFFIXES
    }


def find_library() -> Path:
    """libnvrtc of the installed pip package; NvrtcError naming the package when there is none."""
    advice = f"pip install {PACKAGE}=={PACKAGE_VERSION} (for {sys.executable})"
    try:
        spec = util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for library in sorted(Path(folder).glob("lib/libnvrtc.so.*")):
            return library
    raise NvrtcError(f"NVRTC is not installed: {advice}")


def open_library() -> Nvrtc:
    """The installed NVRTC; NvrtcError unless it is the release line that the kernels are built with."""
    nvrtc = Nvrtc(find_library())
    if nvrtc.version() != SUPPORTED:
        found = ".".join(map(str, nvrtc.version()))
        raise NvrtcError(f"NVRTC {found} found, the kernels need {PACKAGE}=={PACKAGE_VERSION}")
    return nvrtc


def compile_options(arch: str) -> list[str]:
    """No contraction, no fast math; -v makes the assembler report registers, spills and shared memory."""
    return [
        f"--gpu-architecture={arch}",
        f"--define-macro=GROUPED_SM={arch.removeprefix('sm_')}",
        "--std=c++17",
        "--device-as-default-execution-space",
        "-fmad=false",
        "-lineinfo",
        "--ptxas-options=-v",
    ]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("--headers", type=Path, action="append", default=[], help="a folder; repeatable")
    parser.add_argument("--arch", required=True, help="sm_70, sm_80 or sm_90")
    parser.add_argument("--cubin", type=Path, required=True, help="where the cubin goes")
    parser.add_argument("--log", type=Path, required=True, help="where the compiler's messages go")
    return parser.parse_args(arguments)


def _replace(path: Path, data: bytes) -> None:
    # A build that is stopped half-way must not leave a half-written file that looks up to date.
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(data)
    part.replace(path)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        cubin, log = open_library().compile(
            options.source.name,
            options.source.read_bytes(),
            read_headers(options.headers),
            compile_options(options.arch),
        )
    except (NvrtcError, OSError) as error:
        print(f"nvrtc_compile: {error}", file=sys.stderr)
        return 1
    _replace(options.cubin, cubin)
    _replace(options.log, log.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
