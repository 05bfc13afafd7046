"""Stands in for a step of a night: `python -m night_steps STATUS [LINE…]` prints the lines and ends so."""

from __future__ import annotations

import os
import signal
import sys
import time

if __name__ == "__main__":
    status, *lines = sys.argv[1:]
    for line in lines:
        print(line, flush=True)
    if status == "hang":
        time.sleep(60)
    if status == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    sys.exit(int(status))
