"""Which instrument measured: a digest over the sources of the packages that make a kind of measurement.

A record made by other sources is stale. Inputs and goldens are no part of it: the manifest hash covers them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evidence import places

VERSION = "0.1.0"
ALL = ("fixtures", "regression", "evidence", "benchmarks", "sanitizer")
# Corpora, planted kernels and patches make a measurement as much as modules do.
SOURCES = (".py", ".json", ".toml", ".cc", ".cu", ".cuh", ".h", ".patch")
MANIFEST = "manifest.json"
# What decides the numbers of a kind. A change elsewhere (the report, say) leaves its records fresh.
PACKAGES = {
    **dict.fromkeys(("replay", "accept", "contract", "fuzz", "emulation"), ("fixtures", "regression")),
    **dict.fromkeys(
        ("memcheck", "racecheck", "initcheck", "synccheck", "leakcheck"), ("fixtures", "sanitizer")
    ),
    "static": ("artifacts", "benchmarks/static", "kernels/grouped_attention"),
    "latency": ("benchmarks/latency", "kernels/grouped_attention"),
    "abba": ("benchmarks/abba", "benchmarks/latency", "kernels/grouped_attention"),
    "calibration": (
        "benchmarks/abba",
        "benchmarks/calibrate",
        "benchmarks/latency",
        "kernels/grouped_attention",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Instrument:
    """Version and source digest of what measured."""

    version: str
    digest: str


def of(kind: str, root: Path | None = None) -> Instrument:
    """The instrument of this checkout for one kind of measurement."""
    return Instrument(version=VERSION, digest=_digest(root or places.root(), PACKAGES.get(kind, ALL)))


def _digest(root: Path, packages: Iterable[str]) -> str:
    state = hashlib.sha256()
    for package in packages:
        for path in sorted(path for path in (root / package).rglob("*") if path.suffix in SOURCES):
            if path.name == MANIFEST:
                continue
            data = path.read_bytes()
            state.update(f"{path.relative_to(root).as_posix()}\0{len(data)}\0".encode())
            state.update(data)
    return state.hexdigest()
