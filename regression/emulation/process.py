"""Runs the worker with a limit on how long it may say nothing, and reads how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence import places
from regression.emulation.results import CRASHED, CaseResult, Emulation, Finding

# A case takes a second; on a busy machine, several.
SILENCE_LIMIT_S = 300.0
POLL_S = 0.1
# How a wrong access ends a process. Any other signal comes from outside.
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)


class WorkerError(RuntimeError):
    """The worker failed where no emulated kernel can be at fault."""


def emulate(
    emulator: Path, host: Path, names: Sequence[str], *, limit_s: float = SILENCE_LIMIT_S
) -> Emulation:
    """Emulate cases in a process of its own. WorkerError when that failed for a reason of its own."""
    words = ["--emulator", str(emulator), "--host", str(host), "--cases", ",".join(names)]
    with tempfile.TemporaryDirectory(prefix="kernelgate-emulated-") as folder:
        said, errors = Path(folder) / "said.jsonl", Path(folder) / "errors.txt"
        status = _ended([sys.executable, "-m", "regression.emulation.worker", *words], said, errors, limit_s)
        log = errors.read_text(encoding="utf-8", errors="replace").strip()
        return _read(status, _lines(said), log, len(names), limit_s)


@dataclass(frozen=True, kw_only=True)
class _Said:
    """Results, and the case that had begun and not ended."""

    results: tuple[CaseResult, ...]
    open: str | None
    other: str


def _read(status: int | None, said: _Said, log: str, wanted: int, limit_s: float) -> Emulation:
    if status == 0 and len(said.results) == wanted:
        return Emulation(results=said.results, wanted=wanted)
    if status is None and said.open is not None:
        stopped = f"{said.open} ran past {limit_s:.0f} s, {wanted - len(said.results)} cases have no result"
        return Emulation(results=said.results, wanted=wanted, stopped=stopped)
    if status is None or -status not in FAULTS or said.open is None:
        end = "ran past its limit" if status is None else f"ended with status {status}"
        raise WorkerError(f"the emulating process {end}: {' '.join([said.other, log[-800:]]).strip()}")
    text = log.splitlines()[-1] if log else signal.Signals(-status).name
    finding = Finding(kind=CRASHED, order="then the process ended", text=f"{_meaning(-status)}, {text}")
    crashed = CaseResult(name=said.open, findings=(finding,))
    left = wanted - len(said.results) - 1
    stopped = f"{left} cases were not run after that" if left else ""
    return Emulation(results=(*said.results, crashed), wanted=wanted, stopped=stopped)


def _meaning(number: int) -> str:
    if number in (signal.SIGSEGV, signal.SIGBUS):
        return "memory was touched that no tensor and no block has"
    return "a misaligned access, or an index past the end of an array" if number == signal.SIGILL else "ended"


def _lines(said: Path) -> _Said:
    results, begun, other = [], None, ""
    for line in said.read_text(encoding="utf-8", errors="replace").splitlines():
        value = _parsed(line)
        if value is None:
            other = line
        elif "begin" in value:
            begun = str(value["begin"])
        else:
            results.append(CaseResult.from_json(value))
            begun = None
    return _Said(results=tuple(results), open=begun, other=other)


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _ended(command: Sequence[str], said: Path, errors: Path, limit_s: float) -> int | None:
    """The exit status; None when the process had to be ended, as it said nothing for too long."""
    with said.open("wb") as out, errors.open("wb") as err:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=_environment(),
            start_new_session=True,
        )
        try:
            return _watched(child, said, limit_s)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def _watched(child: subprocess.Popen[bytes], said: Path, limit_s: float) -> int | None:
    size, since = 0, time.monotonic()
    while time.monotonic() - since < limit_s:
        try:
            return child.wait(timeout=POLL_S)
        except subprocess.TimeoutExpired:
            now = said.stat().st_size
            size, since = (size, since) if now == size else (now, time.monotonic())
    return None


def _environment() -> dict[str, str]:
    """The caller's, with this checkout importable."""
    root = places.root()
    paths = filter(None, [str(root), str(root / "kernels"), os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
