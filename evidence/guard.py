"""A command in a child process, so that no kernel can end it without a verdict.

Kernels run in the process that judges them. One that calls `exit(0)` would leave an exit status of 0, which
says admitted: so a parent that runs nothing else holds the status against what the command told it last.
`python -m evidence.guard MODULE …` does so for another module: pytest, for one.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import runpy
import secrets
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from evidence import ending, places
from evidence.ending import EXIT_CODES

LIMIT_VARIABLE = "KERNELGATE_LIMIT_S"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LONGEST_S = 1e8
GENERATIONS = 8
PIPE_BYTES = 1 << 20  # more than a command tells
STATUS, FAILED = "status", "failed"
WITHDRAWN = ".withdrawn"  # what the store doesn't read
INTERRUPTED = 130
FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def guarded(main: Callable[[], int]) -> int:
    """Run `main` in a child process; return the exit status for `sys.exit`, in the child as in the parent.

    The parent says the verdict's line itself, when the child and all that it started have ended. Where the
    child ends before it told its status, ends with another one, is ended by a signal (which then ends the
    parent too), or takes more seconds than $KERNELGATE_LIMIT_S, that line is unknown, `--json` says so, and
    the records that the child kept are withdrawn.
    """
    try:
        limit_s = _limit_s()
    except ValueError:
        _say("usage", f"${LIMIT_VARIABLE} is no number of seconds")
        return EXIT_CODES["usage"]
    token = secrets.token_hex(8)  # what a kernel writes to any pipe it finds is no message
    reading, writing = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        os.close(reading)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return _told(main, writing, token)
    os.close(writing)
    expired = _watch(child, limit_s)
    _, status = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    _end_orphans()
    said = Said.read(reading, token)
    if expired:
        return _void(said, "time-limit", f"ended after {limit_s:g} s")
    return _judged(os.waitstatus_to_exitcode(status), said)


@dataclass
class Said:
    """What a child told: verdicts' lines, records, the status it was about to end with, what went wrong."""

    lines: list[str]
    records: list[Path]
    status: int | None = None
    failed: str = ""

    @classmethod
    def read(cls, reading: int, token: str) -> Said:
        """All that lies in the pipe. A process that the child left behind may still hold its other end."""
        os.set_blocking(reading, False)
        with suppress(BlockingIOError):
            return cls.of(os.read(reading, PIPE_BYTES).decode(errors="replace"), token)
        return cls([], [])

    @classmethod
    def of(cls, text: str, token: str) -> Said:
        """From one message a line: the token, what it is of, and its text."""
        said = cls([], [])
        for line in text.split("\n"):
            mark, word, value = (*line.split(" ", 2), "", "")[:3]
            if mark != token:
                continue
            if word == ending.LINE:
                said.lines.append(value)
            elif word == ending.RECORD:
                said.records.append(Path(value))
            elif word == STATUS:
                said.status = int(value)
            elif word == FAILED:
                said.failed = value
        return said


def _limit_s() -> float:
    """Seconds; 0 is no limit."""
    limit_s = float(os.environ.get(LIMIT_VARIABLE) or 0)
    if not 0 <= limit_s < LONGEST_S:
        raise ValueError(limit_s)
    return limit_s


def _told(main: Callable[[], int], writing: int, token: str) -> int:
    """The status that `main` ends with, told to the parent first; with a reason, where it has given none."""
    own = os.getpid()

    def tell(word: str, value: object) -> None:
        if os.getpid() == own:  # a copy of the command that a kernel forked judges nothing
            text = " ".join(str(value).splitlines())
            os.write(writing, f"{token} {word} {text}\n".encode(errors="replace"))

    ending.listen(tell)
    try:
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
        tell(FAILED, "interrupted: stopped from outside before it could judge")
    except BaseException as error:  # an import that fails, say: no rejection (exit status 1)
        with suppress(OSError, ValueError, AttributeError):
            traceback.print_exc()
        status = EXIT_CODES["error"]
        tell(FAILED, f"machinery: {type(error).__name__}: {error}")
    with suppress(OSError, ValueError, AttributeError):  # nobody may be reading
        sys.stdout.flush()
    tell(STATUS, status)
    return status


def _judged(status: int, said: Said) -> int:
    if status < 0:
        _void(said, "process-died", f"ended by {signal.Signals(-status).name} before it could judge")
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    if said.status is None or said.status & 0xFF != status:
        what = "without a verdict" if said.status is None else f"after a verdict with {said.status}"
        return _void(said, "process-died", f"ended with exit status {status} {what}: a kernel that exits?")
    if said.failed:
        code, _, text = said.failed.partition(": ")
        _void(said, code, text)
        return status
    for line in said.lines:
        _print(line)
    return status


def _watch(child: int, limit_s: float) -> list[int]:
    """Pass signals on, and end the child at the time limit; the list is empty until that happens."""
    expired: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    def end(_number: int, _frame: FrameType | None) -> None:
        expired.append(child)
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the child as well
    for number in FORWARDED:
        signal.signal(number, forward)
    if limit_s > 0:
        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
    return expired


def _end_orphans() -> None:
    """Processes that the child started come to this one, as the nearest that asked for them, when it ends."""
    me = str(os.getpid())
    for _ in range(GENERATIONS):
        found = [
            int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _parent_of(path) == me
        ]
        for number in found:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        for number in found:
            with suppress(ChildProcessError):
                os.waitpid(number, 0)
        if not found:
            return


def _parent_of(stat: Path) -> str:
    try:
        return stat.read_text().rpartition(")")[2].split()[1]
    except (OSError, IndexError):
        return ""


def _void(said: Said, code: str, text: str) -> int:
    """End as unknown: whatever the child had told or kept before counts for nothing."""
    for path in said.records:
        with suppress(OSError):
            if path.parent == places.records():
                path.rename(path.with_suffix(WITHDRAWN))
    result = ending.asked_for(sys.argv)
    with suppress(OSError):
        if result is not None and ending.prepare(result) is None:
            ending.write_bare(result, ending.CHECKED["error"], [(code, text)])
    _say(code, text)
    return EXIT_CODES["error"]


def _say(code: str, text: str) -> None:
    _print(f"verdict: unknown ({code}: {' '.join(text.split())})")


def _print(line: str) -> None:
    """Print on a line of its own: a kernel may have left one without an end."""
    with suppress(OSError, ValueError, AttributeError):  # nobody may be reading
        print(f"\n{line}", flush=True)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _module() -> int:
    """Run the module that the command line names as if it had been started; the status it exits with."""
    del sys.argv[0]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
            return 1
        return ended.code or 0
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m evidence.guard MODULE [its arguments]")
    sys.exit(guarded(_module))
