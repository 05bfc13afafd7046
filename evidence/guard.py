"""A command in a child process, so that no kernel can end it without a verdict.

Kernels run in the process that judges them. One that calls `exit(0)` would leave an exit status of 0, which
says admitted: so a parent that runs nothing else holds the status against what the command told it last.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType

from evidence.ending import EXIT_CODES

LIMIT_VARIABLE = "KERNELGATE_LIMIT_S"
PR_SET_PDEATHSIG = 1
INTERRUPTED = 130
FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def guarded(main: Callable[[], int]) -> int:
    """Run `main` in a child process; return the exit status for `sys.exit`, in the child as in the parent.

    The parent adds a verdict's line when the child ends before it told its status, ends with another one, is
    ended by a signal (which then ends the parent too), or takes more seconds than $KERNELGATE_LIMIT_S.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _die_with_parent()
        return _told(main, writing)
    os.close(writing)
    expired = _watch(child)
    _, status = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if expired:
        return _unknown("time-limit", f"ended after {os.environ[LIMIT_VARIABLE]} s")
    return _judged(os.waitstatus_to_exitcode(status), _last_word(reading))


def _told(main: Callable[[], int], writing: int) -> int:
    """The status that `main` ends with, told to the parent first."""
    try:
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except (Exception, SystemExit) as error:  # an import that fails, say: no rejection (exit status 1)
        traceback.print_exc()
        status = _unknown("machinery", f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    os.write(writing, bytes([status]))
    return status


def _judged(status: int, told: bytes) -> int:
    if status < 0:
        _unknown("process-died", f"ended by {signal.Signals(-status).name} before it could judge")
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    if told != bytes([status & 0xFF]):
        what = "without a verdict" if not told else f"after a verdict with {told[0]}"
        return _unknown("process-died", f"ended with exit status {status} {what}: a kernel that exits?")
    return status


def _watch(child: int) -> list[int]:
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
    limit_s = float(os.environ.get(LIMIT_VARIABLE) or 0)
    if limit_s > 0:
        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
    return expired


def _last_word(reading: int) -> bytes:
    """The status that was told; empty when the child ended before."""
    os.set_blocking(reading, False)  # a process that the kernel left behind may hold the other end
    try:
        return os.read(reading, 1)
    except BlockingIOError:
        return b""


def _unknown(code: str, text: str) -> int:
    print(f"verdict: unknown ({code}: {' '.join(text.split())})", flush=True)
    return EXIT_CODES["error"]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
