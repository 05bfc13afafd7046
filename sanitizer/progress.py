"""How far a run is, on a terminal; silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from sanitizer import marks

WIDTH = 72


def meter(path: Path, count: int) -> Callable[[], None]:
    """What shows, when called, how many of the cases the marks in `path` have ended."""

    def show() -> None:
        if not sys.stdout.isatty():
            return
        seen = marks.read(path)
        text = f"{len(seen.ended)}/{count} {seen.open or ''}"[:WIDTH]
        print(f"\r{text.ljust(WIDTH)}\r", end="", flush=True)

    return show
