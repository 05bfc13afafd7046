"""Whose results these are: the GPU and its driver, or the processor. Machines never mix in one graph."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from typing import Any

from evidence import machine


def describe() -> dict[str, str]:
    """asv's machine file entry. Every field names a graph, so nothing that changes by itself is in it."""
    seen = machine.describe()
    gpu = _current(seen)
    return {
        "machine": _gpu_name(gpu) if gpu else _cpu_name(seen),
        "gpu": f"{gpu['name']} driver {gpu['driver']}" if gpu else "none",
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": str(seen["cpu"]),
        "num_cpu": str(seen["cores"]),
        "ram": "not recorded",
    }


def _current(seen: Mapping[str, Any]) -> Mapping[str, str] | None:
    """The GPU that torch would use. RuntimeError when nvidia-smi doesn't list it: it must have its name."""
    import torch  # a listing of commits needs no torch

    if not torch.cuda.is_available():
        return None
    uuid = str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)
    for gpu in seen["gpus"]:
        if gpu["uuid"].removeprefix("GPU-") == uuid.removeprefix("GPU-"):
            found: Mapping[str, str] = gpu
            return found
    raise RuntimeError(
        f"nvidia-smi doesn't list the GPU {uuid} that torch uses: {seen['gpu_note'] or 'others'}"
    )


def _gpu_name(gpu: Mapping[str, str]) -> str:
    return _plain(f"{gpu['name']} {gpu['uuid']} driver {gpu['driver']}")


def _cpu_name(seen: Mapping[str, Any]) -> str:
    return _plain(f"cpu {seen['cpu']} {seen['cores']} cores")


def _plain(text: str) -> str:
    """A folder's name."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).strip("_")
