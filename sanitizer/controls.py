"""Positive controls, built: planted faults that a tool must find in the run that vouches for a kernel."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from artifacts.places import root
from grouped_attention import recipe, toolchain
from sanitizer.planting import ControlError

HOST = ("control:over_read", "control:misaligned")
FOLDER = Path(__file__).parent / "planted"
COMPILE_LIMIT_S = 120


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


def carried(artifact: Path | None, arch: str) -> Path | None:
    """The planted kernels that were built elsewhere and lie with the artifact or beside it, if any."""
    folders = () if artifact is None else (artifact, artifact.absolute().parent)
    return next((path for folder in folders if (path := folder / _file(arch)).is_file()), None)


def _file(arch: str) -> str:
    return f"control-{arch}.cubin"


def build_cuda(folder: Path, arch: str) -> Path:
    """The planted kernels as a cubin of their own; needs NVRTC, no GPU."""
    cubin = folder / _file(arch)
    script = root() / "kernels" / "cmake" / "nvrtc_compile.py"
    log = cubin.with_suffix(".txt")
    source = str(FOLDER / "device.cu")
    _run([sys.executable, str(script), source, "--arch", arch, "--cubin", str(cubin), "--log", str(log)])
    return cubin


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
