"""What the measuring machine is: CPU, system, Python, torch's version, and the GPUs that nvidia-smi sees."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

# Instruction sets that decide which vector code the host backend takes.
CPU_FLAGS = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_fp16", "asimd")
GPU_FIELDS = {
    "name": "name",
    "uuid": "uuid",
    "driver": "driver_version",
    "compute_capability": "compute_cap",
    "memory": "memory.total",
    "sm_clock": "clocks.current.sm",
    "memory_clock": "clocks.current.memory",
    "max_sm_clock": "clocks.max.sm",
    "throttle_reasons": "clocks_throttle_reasons.active",
    "ecc": "ecc.mode.current",
}
ABSENT = "absent"


def describe() -> dict[str, Any]:
    """One JSON object; `gpus` is a list, with `gpu_note` saying why when it is empty."""
    gpus, note = gpus_seen()
    return {**_fixed(), "gpus": gpus, "gpu_note": note}


@cache
def _fixed() -> dict[str, Any]:
    model, flags = _cpu(Path("/proc/cpuinfo"))
    return {
        "cpu": model,
        "cpu_flags": flags,
        "cores": _cores(),
        "os": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "torch": package_version("torch"),
        "numpy": package_version("numpy"),
        "tvm_ffi": package_version("apache-tvm-ffi"),
    }


def gpus_seen() -> tuple[list[dict[str, str]], str]:
    """The GPUs that CUDA may use, with their state now, and a note when there is none to see."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return [], "nvidia-smi not found"
    command = [tool, f"--query-gpu={','.join(GPU_FIELDS.values())}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"nvidia-smi did not answer: {error}"
    if done.returncode != 0:
        return (
            [],
            f"nvidia-smi gave exit status {done.returncode}: {(done.stderr or done.stdout).strip()[:200]}",
        )
    gpus, note = parse_gpus(done.stdout)
    chosen = visible(gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    return chosen, note if chosen or not gpus else "CUDA_VISIBLE_DEVICES hides all GPUs"


def visible(gpus: list[dict[str, str]], chosen: str | None) -> list[dict[str, str]]:
    """Those that CUDA_VISIBLE_DEVICES names, by index in PCI order or by the start of a UUID; None: all."""
    if chosen is None:
        return gpus
    names = [name.strip() for name in chosen.split(",")]
    return [
        gpu
        for index, gpu in enumerate(gpus)
        if str(index) in names or any(n.startswith("GPU-") and gpu["uuid"].startswith(n) for n in names)
    ]


def parse_gpus(text: str) -> tuple[list[dict[str, str]], str]:
    """GPUs from nvidia-smi's CSV; a line with another number of fields is named in the note."""
    gpus, odd = [], []
    for line in filter(str.strip, text.splitlines()):
        values = [value.strip() for value in line.split(",")]
        if len(values) == len(GPU_FIELDS):
            gpus.append(dict(zip(GPU_FIELDS, values, strict=True)))
        else:
            odd.append(line.strip())
    note = f"not understood: {odd}" if odd else ("" if gpus else "nvidia-smi lists no GPU")
    return gpus, note


def package_version(name: str) -> str:
    """Installed version, without importing the package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ABSENT


def _cpu(path: Path) -> tuple[str, list[str]]:
    try:
        text = path.read_text()
    except OSError:
        return platform.processor() or ABSENT, []
    pairs = [line.split(":", 1) for line in text.splitlines() if ":" in line]
    fields = {key.strip(): value.strip() for key, value in reversed(pairs)}
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    return fields.get("model name") or platform.processor() or ABSENT, [f for f in CPU_FLAGS if f in flags]


def _cores() -> int:
    return len(os.sched_getaffinity(0))
