"""Partials of the debug operation, compared by a digest per split and row."""

from __future__ import annotations

import numpy as np

from regression.bits import Array
from regression.call import KernelError
from regression.results import PartialDifference


def difference(golden: Array, got: Array) -> PartialDifference | None:
    """Which digests [S, R] differ, None when all agree. KernelError if their number is wrong."""
    if golden.shape != got.shape:
        raise KernelError(f"partials of {got.shape} (splits, rows), the golden has {golden.shape}")
    places = np.argwhere(golden != got)
    if not len(places):
        return None
    split, row = (int(i) for i in places[0])
    return PartialDifference(differing=len(places), compared=golden.size, first_split=split, first_row=row)
