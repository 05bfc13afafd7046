"""One run of a gate on one kernel: a process with a time limit, and what its end means."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from evidence import places
from regression.emulation.process import FAULTS
from regression.faults import gates
from regression.faults.gates import Built, Gate, Selection

CAUGHT, SILENT, BROKEN = "caught", "silent", "broken"
REJECTED, UNKNOWN = 1, 4
QUIET = (0, 3)
VERDICT = re.compile(r"^verdict: (\w+) \((.*)\)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Run:
    """`word` is caught, silent or broken; `text` is the gate's reason, `runs` how many it took."""

    gate: str
    word: str
    text: str
    seconds: float
    runs: int = 1


def run(gate: Gate, built: Built, selection: Selection, *, most: int = 1) -> Run:
    """Run a gate until it catches, at most so many times."""
    tick = time.perf_counter()
    for number in range(1, most + 1):
        word, text = _once(gate, built, selection)
        if word != SILENT or number == most:
            break
    return Run(gate=gate.name, word=word, text=text, runs=number, seconds=time.perf_counter() - tick)


def _once(gate: Gate, built: Built, selection: Selection) -> tuple[str, str]:
    with tempfile.TemporaryDirectory(prefix="kernelgate-fault-") as folder:
        home = Path(folder)
        status, output = _process(gates.command(gate, built, selection), gate.limit_s, built, home)
    return judged(gate, status, output)


def judged(gate: Gate, status: int | None, output: str) -> tuple[str, str]:
    """What an exit status and the last line say of the kernel. Status None is a run past its limit.

    A process that ended itself by a wrong access gave no verdict, so nobody would admit the kernel either.
    Another signal comes from outside, from a machine without memory, say, and tells nothing of the kernel.
    """
    found = VERDICT.findall(output)
    text = found[-1][1] if found else _last(output)
    if status is None:
        return BROKEN, f"ran past {gate.limit_s:.0f} s: {text}"
    if status < 0:
        return CAUGHT if -status in FAULTS else BROKEN, f"the process ended by {_signal(-status)}"
    if status in QUIET and found:
        return SILENT, text
    wanted = UNKNOWN if gate.refuses else REJECTED
    return (CAUGHT, text) if status == wanted and found else (BROKEN, f"exit status {status}: {text}")


def _signal(number: int) -> str:
    known = {each.value: f" ({each.name})" for each in signal.Signals}
    return f"signal {number}{known.get(number, '')}"


def _process(command: list[str], limit_s: float, built: Built, home: Path) -> tuple[int | None, str]:
    log = home / "log.txt"
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(home),
            # Python looks for packages there first, in processes that the gate starts, too.
            cwd=built.package or home,
            start_new_session=True,
        )
        try:
            status: int | None = child.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    return status, log.read_text(encoding="utf-8", errors="replace")


def environment(home: Path) -> dict[str, str]:
    """The caller's, with this checkout importable, and another home: no record stays."""
    root = places.root()
    given = [os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(root), str(root / "kernels"), *given])),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        places.HOME_VARIABLE: str(home),
        "GROUPED_ATTENTION_STORE": str(home / "store"),
    }


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"
