"""Runs the steps, one process each; what became of each is kept, whatever it was."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from artifacts import places
from benchmarks.nightly.plan import Step

PASSED, REJECTED, UNDECIDED, UNKNOWN, FAILED = "passed", "rejected", "undecided", "unknown", "failed"
BY_STATUS = {0: PASSED, 1: REJECTED, 3: UNDECIDED, 4: UNKNOWN}
SAID = {"admitted": PASSED, "rejected": REJECTED, "undecided": UNDECIDED, "unknown": UNKNOWN}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How one step ended: `word`, its last line, its exit status (None: killed at its time limit)."""

    step: Step
    word: str
    last: str
    status: int | None
    seconds: float
    log: Path


def run(step: Step, log: Path, extra: Mapping[str, str]) -> Ended:
    """Run one step; all its output goes to its log. Never raises for what the step does."""
    start = time.perf_counter()
    line = [sys.executable, "-m", *step.arguments]
    with log.open("wb") as stream:
        try:
            status: int | None = subprocess.run(
                line,
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=step.timeout_s,
                env=_environment(step, extra),
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        except OSError as error:
            stream.write(f"can't be started: {error}\n".encode())
            status = -1
    last = _last(log)
    word = conclude(step, status, last)
    return Ended(step=step, word=word, last=last, status=status, seconds=time.perf_counter() - start, log=log)


def conclude(step: Step, status: int | None, last: str) -> str:
    """A step's word. Where a verdict is due, exit status and last line must agree, or the step failed."""
    by_status = BY_STATUS.get(-1 if status is None else status, FAILED)
    if not step.verdict:
        return by_status if by_status == PASSED else FAILED
    if not last.startswith("verdict: "):
        return FAILED
    said = SAID.get(last.split()[1], FAILED)
    return by_status if said == by_status else FAILED


def _environment(step: Step, extra: Mapping[str, str]) -> dict[str, str]:
    paths = [str(places.root()), str(places.root() / places.PRODUCT), os.environ.get("PYTHONPATH")]
    # PCI's order is nvidia-smi's; CUDA's own puts the fastest first.
    one = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(step.gpu)}
    chosen = {} if step.gpu is None else one
    return {**os.environ, **extra, **chosen, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _last(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "no output"
