"""Compiles the device sources of a kernels/ folder for the emulated GPU of one architecture."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from regression.emulation import assembly, launch

SIMT = Path(__file__).with_name("simt")
PARTS = ("simt.cc", "grid.cc")
SOURCES = ("include", "src")
COMPILE_LIMIT_S = 300
FLAGS = (
    "-std=c++17", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE",
    "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-psabi",
    # A misaligned access or an index past an array's end is a signal.
    "-fsanitize=alignment,bounds", "-fsanitize-undefined-trap-on-error", "-include", "device.h",
    "-Wl,-z,defs",  # a function that only a declaration is there of can't be called
)  # fmt: skip


class CompileError(Exception):
    """There is no emulator of these sources, with a reason code: `no-compiler` or `not-emulated`."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def build(kernels: Path, arch: str, store: Path) -> Path:
    """The library that emulates a kernels/ folder on `arch` ("sm_90"), from `store` or compiled into it.

    It is named by all that went into it. CompileError when it can't be had.
    """
    tool = _compiler()
    name = f"emulator-{arch}-{_digest(kernels, arch, tool)[:32]}.so"
    if not (store / name).is_file():
        store.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=store) as folder:
            made = Path(folder) / name
            command = _command(tool, _translated(kernels, Path(folder)), arch)
            _compile([*command, f"-DGROUPED_LAUNCH_KNOWN={int(launch.is_known(kernels))}"], made)
            made.rename(store / name)
    return store / name


def _translated(kernels: Path, folder: Path) -> Path:
    """A copy of the sources in which calls stand for inline PTX."""
    for path in (path for name in SOURCES for path in _files(kernels / name)):
        to = folder / path.relative_to(kernels)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(assembly.translate(path.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


def _command(tool: str, kernels: Path, arch: str) -> list[str]:
    folders = (SIMT, *(kernels / name for name in SOURCES))
    paths = [f"-I{folder}" for folder in folders]
    return [tool, *FLAGS, f"-DGROUPED_SM={arch.removeprefix('sm_')}", *paths, *(str(SIMT / p) for p in PARTS)]


def _compile(command: list[str], out: Path) -> None:
    try:
        done = subprocess.run(
            [*command, "-o", str(out)], capture_output=True, text=True, timeout=COMPILE_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CompileError("not-emulated", f"{command[0]} ran past {COMPILE_LIMIT_S} s") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower() or "undefined" in line]
        lines = lines or done.stderr.splitlines() or [f"status {done.returncode}"]
        first = re.sub(r"^\S*?/(?=(?:include|src)/)", "", lines[0])
        text = f"the device sources don't compile for the emulated GPU: {first}"
        raise CompileError("not-emulated", f"{text}\n{done.stderr[-2000:]}")


def _compiler() -> str:
    for name in filter(None, (os.environ.get("CXX"), "g++", "c++")):
        found = shutil.which(name)
        if found is not None:
            return found
    raise CompileError("no-compiler", "no C++ compiler is here: install g++, or name one by $CXX")


def _digest(kernels: Path, arch: str, tool: str) -> str:
    version = subprocess.run([tool, "--version"], capture_output=True, timeout=60, check=False).stdout
    state = hashlib.sha256(repr((arch, tool, FLAGS)).encode() + version)
    for module in ("assembly.py", "launch.py"):
        state.update(Path(__file__).with_name(module).read_bytes())
    for folder in (SIMT, *(kernels / name for name in SOURCES)):
        for path in _files(folder):
            data = path.read_bytes()
            state.update(f"{path.relative_to(folder.parent).as_posix()}\0{len(data)}\0".encode() + data)
    return state.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    return iter(sorted(path for path in folder.rglob("*") if path.is_file()))
