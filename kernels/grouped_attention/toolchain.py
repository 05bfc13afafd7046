"""The tools a build uses, and their versions: part of a library's identity."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ABSENT = "absent"
NVRTC_PACKAGES = ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc")
TVM_FFI_PACKAGE = "apache-tvm-ffi"

# Variables that would change what a compiler emits without being part of the manifest.
_SCRUBBED = (
    "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH", "NINJA_STATUS", "MAKEFLAGS", "DESTDIR", "LD_PRELOAD",
)  # fmt: skip


class ToolError(RuntimeError):
    """A build tool is missing or doesn't answer; the message says how to get it."""


@dataclass(frozen=True, kw_only=True)
class Tools:
    """Absolute paths of the compiler, cmake and ninja."""

    cxx: Path
    cmake: Path
    ninja: Path


def find() -> Tools:
    """The C++ compiler ($CXX, else g++, else c++), and the cmake and ninja beside this Python or on PATH."""
    return Tools(
        cxx=_locate(os.environ.get("CXX") or "g++", "install g++, or set CXX to a C++20 compiler"),
        cmake=_locate("cmake", "pip install cmake"),
        ninja=_locate("ninja", "pip install ninja"),
    )


def versions(tools: Tools, backend: str) -> dict[str, str]:
    """Name → version of all that shapes a library of `backend`."""
    found = {
        "cxx": first_line([str(tools.cxx), "--version"]),
        "cxx_target": first_line([str(tools.cxx), "-dumpmachine"]),
        "cmake": first_line([str(tools.cmake), "--version"]).removeprefix("cmake version "),
        "ninja": first_line([str(tools.ninja), "--version"]),
        "tvm_ffi": package_version((TVM_FFI_PACKAGE,)),
    }
    return found if backend == "host" else {**found, "nvrtc": package_version(NVRTC_PACKAGES)}


def compiler_identity(versions_of: Mapping[str, str]) -> str:
    """Name and version of the compiler whose output a host library is."""
    return f"{versions_of['cxx']} {versions_of['cxx_target']}"


def package_version(names: tuple[str, ...]) -> str:
    """Version of the first installed package among `names`, else "absent"."""
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ABSENT


def environment() -> dict[str, str]:
    """The caller's environment without variables that would change the compilers' output unseen."""
    kept = {name: value for name, value in os.environ.items() if name not in _SCRUBBED}
    return {
        **kept,
        "LC_ALL": "C",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}",
    }


def first_line(command: list[str]) -> str:
    """First line that a command prints; ToolError when it fails, is missing, or takes over 20 s."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True, env=environment()
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolError(f"{' '.join(command)}: {error}") from error
    lines = done.stdout.splitlines()
    if not lines:
        raise ToolError(f"{' '.join(command)}: printed nothing")
    return lines[0].strip()


def _locate(name: str, advice: str) -> Path:
    beside = Path(sys.executable).parent / name
    if beside.is_file() and os.access(beside, os.X_OK):
        return beside
    found = shutil.which(name)
    if found is None:
        raise ToolError(f"{name} not found: {advice}")
    return Path(found)
