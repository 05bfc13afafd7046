"""Bitwise comparison of floating-point arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first element, in C order, whose bits differ.

    `golden` is the stored value and `got` the new one; `oracle` is the FP64 truth, None where there is none.
    """

    index: tuple[int, ...]
    golden: float
    got: float
    golden_bits: str
    got_bits: str
    oracle: float | None = None

    def text(self) -> str:
        """One line for a person."""
        place = "[" + ", ".join(map(str, self.index)) + "]"
        truth = "" if self.oracle is None else f", oracle {self.oracle:.9g}"
        values = f"golden {self.golden:.9g} ({self.golden_bits}), got {self.got:.9g} ({self.got_bits})"
        return f"{place}: {values}{truth}"


def pattern(values: Array) -> Array:
    """The bits of a float array as unsigned integers of the same shape."""
    contiguous = np.ascontiguousarray(values).reshape(values.shape)
    return contiguous.view(_UNSIGNED[values.dtype.itemsize])


def mismatches(golden: Array, got: Array) -> Array:
    """True where the bits differ. ValueError when shape or dtype do: such arrays have no common elements."""
    if golden.shape != got.shape or golden.dtype != got.dtype:
        raise ValueError(
            f"golden is {golden.dtype}{golden.shape}, got {got.dtype}{got.shape}: not comparable"
        )
    differs: Array = pattern(golden) != pattern(got)
    return differs


def first_difference(golden: Array, got: Array, oracle: Array | None = None) -> Difference | None:
    """The first element in C order whose bits differ, None if all agree."""
    flat = mismatches(golden, got).reshape(-1)
    if not flat.any():
        return None
    index = tuple(int(i) for i in np.unravel_index(int(flat.argmax()), golden.shape))
    return Difference(
        index=index,
        golden=float(golden[index]),
        got=float(got[index]),
        golden_bits=_hex(golden, index),
        got_bits=_hex(got, index),
        oracle=None if oracle is None else float(oracle[index]),
    )


def ulps(a: Array, b: Array) -> Array:
    """Distance of two float arrays in representable steps, int64; -0 and +0 are 0 apart."""
    distance: Array = np.abs(_ordered(a) - _ordered(b))
    return distance


def _ordered(values: Array) -> Array:
    """Integers in the order of the floats that they stand for."""
    raw = pattern(values).astype(np.int64)
    sign = np.int64(1) << (8 * values.dtype.itemsize - 1)
    ordered: Array = np.where(raw & sign, -(raw & (sign - 1)), raw)
    return ordered


def _hex(values: Array, index: tuple[int, ...]) -> str:
    digits = 2 * values.dtype.itemsize
    return f"0x{int(pattern(values)[index]):0{digits}X}"
