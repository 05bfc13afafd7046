"""Starts one process with a time limit, in a group of its own, and reads how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Ended:
    """`status` is None when the process ran past its limit and was killed; a signal is negative."""

    status: int | None
    output: str

    @property
    def text(self) -> str:
        """How it ended, for a person."""
        if self.status is None:
            return "ran past its time limit"
        return f"killed by signal {-self.status}" if self.status < 0 else f"exit status {self.status}"


def run(command: Sequence[str], *, log: Path, limit_s: float, env: Mapping[str, str]) -> Ended:
    """Run to the end or to the limit; all that it prints goes to `log`. OSError when it can't start."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            start_new_session=True,
        )
        status = _wait(child, limit_s)
    return Ended(status=status, output=log.read_text(encoding="utf-8", errors="replace"))


def _wait(child: subprocess.Popen[bytes], limit_s: float) -> int | None:
    try:
        return child.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            # The group is the child's own: it holds whatever the tool started.
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
