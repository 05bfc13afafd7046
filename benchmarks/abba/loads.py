"""Notices that code was loaded or compiled while times were taken.

What is seen: Python modules, and executable mappings of this process (shared objects, just-in-time compiled
code). What isn't: a device module that the driver loads without mapping host code. A captured graph can't
cause one, as it replays what was loaded when it was captured, and a callable on the host has none.
"""

from __future__ import annotations

import sys
from pathlib import Path

_MAPS = Path("/proc/self/maps")


def count() -> int:
    """Modules and executable mappings of this process; mappings are 0 where /proc can't be read."""
    return len(sys.modules) + _executable_mappings()


def _executable_mappings() -> int:
    try:
        text = _MAPS.read_text()
    except OSError:
        return 0
    return sum(1 for line in text.splitlines() if line.split(maxsplit=2)[1][2] == "x")
