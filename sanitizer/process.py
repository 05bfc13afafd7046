"""Starts one process with time limits, in a session of its own, and reads how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.1
SETTLE_S = 0.02
GENERATIONS = 50  # of processes that fork while they are being killed


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
    size, expired = 0, False
    try:
        while not expired and not _has_ended(child):
            now = time.monotonic()
            grown = limits.watched.stat().st_size if limits.watched.is_file() else 0
            if grown != size:
                size, since = grown, now
                limits.grown()
            expired = now - since > limits.quiet_s or now - started > limits.whole_s
            time.sleep(POLL_S)
    finally:
        # Always, and before the child's number can be given to another: a kernel may have forked.
        _end_session(child.pid)
        child.wait()
    return None if expired else child.returncode


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    """Without reaping it."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_session(leader: int) -> None:
    """Kill the leader, and whatever it started that made no session of its own."""
    for _ in range(GENERATIONS):
        there = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _is_in(path, leader)]
        for number in there:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        if not there:
            return
        time.sleep(SETTLE_S)


def _is_in(stat: Path, leader: int) -> bool:
    """Whether a process lives, and belongs to the leader's session."""
    try:
        state, _parent, _group, session = stat.read_text().rpartition(")")[2].split()[:4]
    except (OSError, ValueError):
        return False
    return state not in ("Z", "X") and int(session) == leader
