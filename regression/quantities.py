"""Which quantity of the arithmetic differs first: maximum, sum, numerator or combine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regression import bits
from regression.bits import Array, Difference

# In the order in which the kernel computes them: a wrong maximum spoils the sum, that the numerator.
QUANTITIES = ("max", "sum", "numerator")

MEANING = {
    "max": "scores: QK products, Kahan sum or scale (docs/arithmetic.md, 2 and 3)",
    "sum": "exponentials, their tree sum or the rescale (3 and 8)",
    "numerator": "probabilities as two halves, PV products or the rescale (4 and 5)",
    "combine": "the combine or the final rounding: all partials agree (7)",
}


@dataclass(frozen=True, kw_only=True)
class Partials:
    """The debug operation's fp32 acc [S, R, H, D] and max_sum [S, R, H, 2]."""

    acc: Array
    max_sum: Array

    def quantity(self, name: str) -> Array:
        """One quantity, [S, R, H] or [S, R, H, D]."""
        return {"max": self.max_sum[..., 0], "sum": self.max_sum[..., 1], "numerator": self.acc}[name]


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """Where two runs part. `dimension` is None for maxima and sums.

    `counts` are differing elements per quantity. `ulps` is how far the two values are apart.
    """

    quantity: str
    split: int
    row: int
    head: int
    dimension: int | None
    difference: Difference
    ulps: int
    counts: dict[str, int]


def diverge(reference: Partials, got: Partials) -> Divergence | None:
    """The first place, by split, row, head and then quantity, where partials differ; None when none does."""
    counts = {name: _count(reference, got, name) for name in QUANTITIES}
    split, row, head = _first_place(reference, got)
    if split < 0:
        return None
    name = next(n for n in QUANTITIES if _differs(reference, got, n)[split, row, head].any())
    return _at(reference, got, name, (split, row, head), counts)


def _at(
    reference: Partials, got: Partials, name: str, place: tuple[int, int, int], counts: dict[str, int]
) -> Divergence:
    ours, theirs = (np.atleast_1d(side.quantity(name)[place]) for side in (reference, got))
    local = bits.first_difference(ours, theirs)
    assert local is not None
    split, row, head = place
    return Divergence(
        quantity=name,
        split=split,
        row=row,
        head=head,
        dimension=local.index[0] if name == "numerator" else None,
        difference=local,
        ulps=int(bits.ulps(ours, theirs)[local.index]),
        counts=counts,
    )


def _differs(reference: Partials, got: Partials, name: str) -> Array:
    return bits.mismatches(reference.quantity(name), got.quantity(name))


def _count(reference: Partials, got: Partials, name: str) -> int:
    return int(_differs(reference, got, name).sum())


def _first_place(reference: Partials, got: Partials) -> tuple[int, int, int]:
    """Split, row and head of the first difference in any quantity; -1 when there is none."""
    any_quantity = _differs(reference, got, "max") | _differs(reference, got, "sum")
    any_quantity |= _differs(reference, got, "numerator").any(axis=-1)
    places = np.argwhere(any_quantity)
    if not len(places):
        return -1, -1, -1
    split, row, head = (int(i) for i in places[0])
    return split, row, head
