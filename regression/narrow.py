"""The first token that makes a split's partials differ, by shortening one row.

The schedule depends on the longest row alone: while another row keeps the length L, a shorter row meets the
same splits. And rows do not influence each other.
"""

from __future__ import annotations

import dataclasses

import torch

from fixtures import inputs as fixture_inputs
from fixtures.groups import Group
from fixtures.inputs import Inputs
from regression import call
from regression.quantities import Partials, diverge
from regression.target import Target


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """A split and a row, and the tokens [first, end) of that row in that split."""

    split: int
    row: int
    first: int
    end: int


def first_token(group: Group, target: Target, source: Target, place: Place) -> int | None:
    """The first token whose arrival makes the row's partials in the split differ between two targets.

    None when they agree once the other rows have the full length: then the difference needs those rows as is.
    """
    sides = [(side, fixture_inputs.materialise(group, device=side.device)) for side in (target, source)]
    low, high = place.first, place.end
    if not _differ(sides, group, place, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _differ(sides, group, place, middle) else (middle, high)
    return high - 1


def _differ(sides: list[tuple[Target, Inputs]], group: Group, place: Place, length: int) -> bool:
    """Whether the two sides differ in the split and row when the row is `length` tokens long."""
    lens = [group.longest] * group.rows
    lens[place.row] = length
    one, other = (_partials(side, inputs, lens, place) for side, inputs in sides)
    return diverge(one, other) is not None


def _partials(target: Target, inputs: Inputs, lens: list[int], place: Place) -> Partials:
    shortened = torch.tensor(lens, dtype=torch.int32, device=inputs.row_lens.device)
    acc, max_sum = call.partials(target, dataclasses.replace(inputs, row_lens=shortened))
    here = (slice(place.split, place.split + 1), slice(place.row, place.row + 1))
    return Partials(acc=acc.numpy()[here], max_sum=max_sum.numpy()[here])
