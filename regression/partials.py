"""Partials of the debug operation, compared by a digest per split and row."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from regression.bits import Array
from regression.results import PartialDifference

DIGEST_BYTES = 8


def digests(acc: Array, max_sum: Array) -> npt.NDArray[np.uint64]:
    """blake2b-8 of the bytes of acc[s, r] and max_sum[s, r], uint64 [S, R]."""
    splits, rows = acc.shape[:2]
    values = [_digest(acc[s, r], max_sum[s, r]) for s in range(splits) for r in range(rows)]
    return np.array(values, dtype=np.uint64).reshape(splits, rows)


def difference(golden: Array, got: Array) -> PartialDifference | None:
    """Which digests differ, None when all agree. ValueError when their shapes do."""
    if golden.shape != got.shape:
        raise ValueError(f"golden digests have shape {golden.shape}, these {got.shape}")
    places = np.argwhere(golden != got)
    if not len(places):
        return None
    split, row = (int(i) for i in places[0])
    return PartialDifference(differing=len(places), compared=golden.size, first_split=split, first_row=row)


def _digest(acc: Array, max_sum: Array) -> int:
    state = hashlib.blake2b(np.ascontiguousarray(acc).tobytes(), digest_size=DIGEST_BYTES)
    state.update(np.ascontiguousarray(max_sum).tobytes())
    return int.from_bytes(state.digest(), "little")
