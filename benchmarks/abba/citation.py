"""The calibration that a verdict rests on: of this machine, or none, and that is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evidence import instrument
from evidence.record import Record

KIND = "calibration"


def machine_key(machine: Mapping[str, Any], *, backend: str) -> str:
    """What a calibration holds for: the GPUs and their driver, or the processor."""
    if backend == "cuda":
        return "; ".join(f"{gpu['name']} {gpu['uuid']} driver {gpu['driver']}" for gpu in machine["gpus"])
    return f"{machine['cpu']}, {machine['cores']} cores"


def line(records: Sequence[Record], machine: Mapping[str, Any], *, backend: str) -> str:
    """One line on the newest calibration of the engine on this machine."""
    key = machine_key(machine, backend=backend)
    for record in reversed(records):
        terms = record.selection.get("terms", {})
        fits = record.kind == KIND and terms.get("machine") == key and terms.get("protocol") == "engine"
        if fits and (words := _words(record)):
            made = (
                ""
                if record.instrument == instrument.of(KIND)
                else ", made by another version of the instrument"
            )
            return f"calibration of this machine: {words} (record {record.id[:12]}{made})"
    return "calibration of this machine: none; run python -m benchmarks calibrate"


def _words(record: Record) -> str:
    """Its judged rates; nothing when it holds no trial."""
    pooled = [
        row for row in record.results["summaries"] if row["context"] is None and row.get("judged", True)
    ]
    known = [row for row in pooled if row["rate"]["trials"] > 0]
    return ", ".join(f"{row['kind']} {row['rate']['hits']} of {row['rate']['trials']}" for row in known)
