"""A command in a child process, so that no kernel can end it without a verdict.

Kernels run in the process that judges them. One that calls `exit(0)` would leave an exit status of 0, which
says admitted: so a parent that runs nothing else holds the status against what the command told it last.
`python -m evidence.guard MODULE …` does so for another module: pytest, for one.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from evidence import ending
from evidence.ending import EXIT_CODES

LIMIT_VARIABLE = "KERNELGATE_LIMIT_S"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LONGEST_S = 1e8
GENERATIONS = 8
MOST_BYTES = 4000  # of a reason, so that a pipe takes it at once
INTERRUPTED = 130
FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def guarded(main: Callable[[], int]) -> int:
    """Run `main` in a child process; return the exit status for `sys.exit`, in the child as in the parent.

    The parent adds a verdict's line when the child ends before it told its status, ends with another one, is
    ended by a signal (which then ends the parent too), or takes more seconds than $KERNELGATE_LIMIT_S; and a
    result, where `--json` asks for one. What such a child leaves behind is ended with it.
    """
    try:
        limit_s = _limit_s()
    except ValueError:
        _say("usage", f"${LIMIT_VARIABLE} is no number of seconds")
        return EXIT_CODES["usage"]
    result = Result(ending.asked_for(sys.argv))
    reading, writing = os.pipe()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        os.close(reading)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return _told(main, writing)
    os.close(writing)
    expired = _watch(child, limit_s)
    _, status = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if os.WIFSIGNALED(status):
        _end_orphans()
    if expired:
        return _unknown(result, "time-limit", f"ended after {limit_s:g} s")
    return _judged(os.waitstatus_to_exitcode(status), _last_words(reading), result)


class Result:
    """What `--json` asks for: whatever lay there before the command began isn't its result."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._before = path, _written(path)

    def write(self, code: str, text: str) -> None:
        """Write that the command failed, unless it left a result itself or the file is somebody else's."""
        path = self._path
        if path is None or _written(path) != self._before:
            return
        with suppress(OSError):
            if self._before is None or ending.is_json_result(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                ending.write_bare(path, "error", [(code, text)], over=True)


def _written(path: Path | None) -> tuple[int, int] | None:
    """When a file was written, and which file it is; None where there is none."""
    with suppress(OSError):
        found = path.stat() if path is not None else None
        return None if found is None else (found.st_ino, found.st_mtime_ns)
    return None


def _limit_s() -> float:
    """Seconds; 0 is no limit."""
    limit_s = float(os.environ.get(LIMIT_VARIABLE) or 0)
    if not 0 <= limit_s < LONGEST_S:
        raise ValueError(limit_s)
    return limit_s


def _told(main: Callable[[], int], writing: int) -> int:
    """The status that `main` ends with, told to the parent first; with a reason, where it has given none."""
    reason, own = "", os.getpid()
    try:
        status = main()
    except KeyboardInterrupt:
        status, reason = INTERRUPTED, "interrupted: stopped from outside before it could judge"
    except BaseException as error:  # an import that fails, say: no rejection (exit status 1)
        with suppress(OSError, ValueError, AttributeError):
            traceback.print_exc()
        status, reason = EXIT_CODES["error"], f"machinery: {type(error).__name__}: {error}"
    with suppress(OSError, ValueError, AttributeError):  # nobody may be reading
        sys.stdout.flush()
    if os.getpid() != own:  # a kernel forked: this copy of the command judges nothing
        os._exit(EXIT_CODES["error"])
    os.write(writing, bytes([status]) + reason.encode(errors="replace")[:MOST_BYTES])
    return status


def _judged(status: int, told: bytes, result: Result) -> int:
    if status < 0:
        _unknown(result, "process-died", f"ended by {signal.Signals(-status).name} before it could judge")
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    if told[:1] != bytes([status & 0xFF]):
        what = "without a verdict" if not told else f"after a verdict with {told[0]}"
        text = f"ended with exit status {status} {what}: a kernel that exits?"
        return _unknown(result, "process-died", text)
    code, _, text = told[1:].decode(errors="replace").partition(": ")
    if code:
        _unknown(result, code, text)
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


def _last_words(reading: int) -> bytes:
    """The status that was told, and the reason; empty when the child ended before."""
    os.set_blocking(reading, False)  # a process that the kernel left behind may hold the other end
    try:
        return os.read(reading, 1 + MOST_BYTES)
    except BlockingIOError:
        return b""


def _unknown(result: Result, code: str, text: str) -> int:
    result.write(code, text)
    _say(code, text)
    return EXIT_CODES["error"]


def _say(code: str, text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # nobody may be reading
        print(f"verdict: unknown ({code}: {' '.join(text.split())})", flush=True)


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
