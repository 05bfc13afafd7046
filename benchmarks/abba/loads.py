"""Notices that code was loaded or compiled while times were taken.

What is seen: Python modules, and shared objects that the dynamic linker added, which is how just-in-time
compilers deliver host code and launchers. What isn't: a device module that the driver loads by itself. A
captured graph can't cause one, as it replays what was loaded when it was captured, and a callable on the
host has none.
"""

from __future__ import annotations

import ctypes
import sys


class _ObjectInfo(ctypes.Structure):
    """struct dl_phdr_info of <link.h>."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_uint16),
        ("added", ctypes.c_ulonglong),
        ("removed", ctypes.c_ulonglong),
    )


_VISIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_ObjectInfo), ctypes.c_size_t, ctypes.c_void_p)
_LIBC = ctypes.CDLL(None)


def count() -> int:
    """Modules imported and shared objects added so far in this process; takes microseconds."""
    return len(sys.modules) + _objects_added()


def _objects_added() -> int:
    seen: list[int] = []

    def visit(info: ctypes._Pointer[_ObjectInfo], _size: int, _data: object) -> int:
        seen.append(int(info.contents.added))
        return 1  # each visit tells the same number: stop at the first

    _LIBC.dl_iterate_phdr(_VISIT(visit), None)
    return seen[0] if seen else 0
