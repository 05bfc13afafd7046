"""What a call may have done to its inputs: any byte, and any that change places, give another fingerprint."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regression.call import WIDTHS, fingerprint

ROW_BYTES = 8192


def filled(count: int) -> Tensor:
    return torch.randint(0, 256, (count,), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, ROW_BYTES - 1, ROW_BYTES, 3 * ROW_BYTES + 5])
def test_a_tensor_of_any_size_has_one(count: int) -> None:
    one = filled(count)
    assert fingerprint(one) == fingerprint(one.clone())
    if count:
        changed = one.clone()
        changed[-1] ^= 0x80
        assert fingerprint(changed) != fingerprint(one)
    assert fingerprint(filled(count + 1)) != fingerprint(one)


@pytest.mark.parametrize("distance", [1, 8, *(8 * width for width in WIDTHS), 8 * WIDTHS[0] * WIDTHS[1]])
def test_bytes_that_change_places_are_seen(distance: int) -> None:
    one = filled(distance + 4 * ROW_BYTES)
    one[3], one[3 + distance] = 0x10, 0x90
    changed = one.clone()
    changed[3], changed[3 + distance] = 0x90, 0x10
    assert fingerprint(changed) != fingerprint(one)


@pytest.mark.parametrize("rows", [(0, 1), (0, 2), (1, 3)])
def test_rows_that_change_places_are_seen(rows: tuple[int, int]) -> None:
    one = filled(4 * ROW_BYTES).view(4, ROW_BYTES)
    changed = one.clone()
    changed[list(rows)] = one[list(rows[::-1])]
    assert fingerprint(changed) != fingerprint(one)


def test_what_lies_beside_a_view_counts_and_its_base_does_not() -> None:
    whole = filled(4 * ROW_BYTES)
    view = whole.as_strided((4, 8), (64, 1), 16)
    before = fingerprint(view)
    whole[-1] ^= 1
    assert fingerprint(view) != before
    odd = torch.empty(0, dtype=torch.uint8).set_(filled(65).untyped_storage()[1:])
    assert fingerprint(odd) == fingerprint(odd.clone())
