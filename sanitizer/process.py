"""Starts one process with time limits, in a group of its own, and reads how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Ended:
    """`status` is None when the process ran past a limit and was killed; a signal is negative."""

    status: int | None
    output: str

    @property
    def text(self) -> str:
        """How it ended, for a person."""
        if self.status is None:
            return "ran past its time limit"
        return f"killed by signal {-self.status}" if self.status < 0 else f"exit status {self.status}"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """`whole_s` for all, `quiet_s` for the time in which the file `watched` doesn't grow: a hang ends there.

    `grown` is called whenever it has.
    """

    whole_s: float
    quiet_s: float
    watched: Path
    grown: Callable[[], object] = lambda: None


def run(command: Sequence[str], *, log: Path, limits: Limits, env: Mapping[str, str]) -> Ended:
    """Run to the end or to a limit; all that it prints goes to `log`. OSError when it can't start."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            start_new_session=True,
        )
        status = _wait(child, limits)
    return Ended(status=status, output=log.read_text(encoding="utf-8", errors="replace"))


def _wait(child: subprocess.Popen[bytes], limits: Limits) -> int | None:
    started = since = time.monotonic()
    size = 0
    try:
        while child.poll() is None:
            now = time.monotonic()
            grown = limits.watched.stat().st_size if limits.watched.is_file() else 0
            if grown != size:
                size, since = grown, now
                limits.grown()
            if now - since > limits.quiet_s or now - started > limits.whole_s:
                return None
            _sleep(child)
        return child.returncode
    finally:
        if child.poll() is None:
            # The group is the child's own: it holds whatever the tool started.
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _sleep(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(timeout=POLL_S)
    except subprocess.TimeoutExpired:
        return
