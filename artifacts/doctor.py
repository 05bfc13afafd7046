"""What this machine can run, and why not the rest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from artifacts import git, places
from artifacts.errors import ArtifactsError
from grouped_attention import toolchain

DISK_NEEDED_GB = 2.0
TIMEOUT_S = 60
_ASK_CUDA = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
status = cuda.cuInit(0)
count, version = ctypes.c_int(0), ctypes.c_int(0)
if status == 0:
    status = cuda.cuDeviceGetCount(ctypes.byref(count)) or cuda.cuDriverGetVersion(ctypes.byref(version))
print(status, count.value, version.value)
"""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing looked for: whether it is there, what was found or how to get it, and what needs it."""

    name: str
    ok: bool
    text: str
    needed_for: str


def checks() -> tuple[Check, ...]:
    """Everything that a session may need, looked for now."""
    return tuple(_guarded(*probe) for probe in PROBES)


def can_measure(found: Sequence[Check]) -> bool:
    """True when build and replay on the CPU can run here."""
    return all(check.ok for check in found if check.needed_for.startswith("everything"))


def table(found: Sequence[Check]) -> str:
    """One line per check, then what follows from them."""
    lines = [f"{'yes' if c.ok else 'NO ':3} {c.name:18} {c.text}  [{c.needed_for}]" for c in found]
    gpu = next(c for c in found if c.name == "gpu")
    summary = (
        "can: build and replay on the CPU" if can_measure(found) else "can't: build or replay on the CPU"
    )
    also = "and on the GPU" if gpu.ok else "not on a GPU (records made elsewhere can be imported)"
    return "\n".join([*lines, f"{summary}; {also}"])


def to_json(check: Check) -> dict[str, Any]:
    """The JSON object of a check."""
    return asdict(check)


def _guarded(name: str, needed_for: str, probe: Callable[[], str]) -> Check:
    try:
        return Check(name=name, ok=True, text=probe(), needed_for=needed_for)
    except (ArtifactsError, toolchain.ToolError, OSError, subprocess.SubprocessError) as error:
        return Check(name=name, ok=False, text=str(error), needed_for=needed_for)


def _python() -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 11):  # noqa: UP036 - doctor is what people run when the rest fails
        raise ArtifactsError("python", f"{version}: 3.11 or newer is needed")
    return version


def _packages() -> str:
    wanted = ("apache-tvm-ffi", "numpy", "rich", "safetensors", "torch")
    found = {name: toolchain.package_version((name,)) for name in wanted}
    absent = [name for name, version in found.items() if version == toolchain.ABSENT]
    if absent:
        raise ArtifactsError("packages", f"pip install {' '.join(absent)}")
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _compiler() -> str:
    return toolchain.first_line([str(toolchain.find().cxx), "--version"])


def _cmake() -> str:
    tools = toolchain.find()
    cmake = toolchain.first_line([str(tools.cmake), "--version"])
    return f"{cmake}, ninja {toolchain.first_line([str(tools.ninja), '--version'])}"


def _nvrtc() -> str:
    version = toolchain.package_version(toolchain.NVRTC_PACKAGES)
    if version == toolchain.ABSENT:
        raise ArtifactsError("nvrtc", "pip install nvidia-cuda-nvrtc-cu12==12.8.93")
    if not version.startswith("12."):
        raise ArtifactsError("nvrtc", f"{version}: sm_70 needs a 12.x (nvidia-cuda-nvrtc-cu12==12.8.93)")
    return version


def _gpu() -> str:
    done = subprocess.run(
        [sys.executable, "-c", _ASK_CUDA], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise ArtifactsError("gpu", "libcuda.so.1 can't be loaded: no NVIDIA driver here")
    status, count, version = map(int, done.stdout.split())
    if status != 0 or count == 0:
        raise ArtifactsError("gpu", f"the driver answers {status} and shows {count} GPUs")
    return f"{count} GPU, driver API {version // 1000}.{version % 1000 // 10}"


def _sanitizer() -> str:
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        raise ArtifactsError(
            "sanitizer", "compute-sanitizer not on PATH (CUDA toolkit, or nvidia-cuda-sanitizer-api)"
        )
    return toolchain.first_line([tool, "--version"])


def _host_sanitizer() -> str:
    found = toolchain.first_line([str(toolchain.find().cxx), "-print-file-name=libasan.so"])
    if not Path(found).is_absolute():
        raise ArtifactsError("asan", "the compiler has no libasan: install it (libasan, libubsan)")
    return found


def _git() -> str:
    root = places.root()
    head = git.run(root, "rev-parse", "--short", "HEAD").decode().strip()
    if git.is_shallow(root):
        raise ArtifactsError("git", f"{head}, but a shallow clone: git fetch --unshallow, or pass --base")
    return f"{head}, full history"


def _disk() -> str:
    folder = places.store()
    while not folder.exists():
        folder = folder.parent
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < DISK_NEEDED_GB or not os.access(folder, os.W_OK):
        raise ArtifactsError(
            "disk", f"{folder}: {free_gb:.1f} GB free, {DISK_NEEDED_GB:.0f} GB writable are needed"
        )
    return f"{free_gb:.0f} GB free at {folder}"


PROBES: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("python", "everything", _python),
    ("packages", "everything", _packages),
    ("compiler", "everything that builds", _compiler),
    ("cmake and ninja", "everything that builds", _cmake),
    ("disk", "everything that builds", _disk),
    ("nvrtc", "building for GPUs", _nvrtc),
    ("gpu", "replay and checks on a GPU", _gpu),
    ("compute-sanitizer", "memory checks on a GPU", _sanitizer),
    ("host sanitizers", "memory checks on the CPU", _host_sanitizer),
    ("git", "finding base and revision", _git),
)
