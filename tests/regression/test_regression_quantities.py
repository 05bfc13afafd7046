"""Localisation in the partials."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fixtures.golden import digest_partials
from regression.bits import Array
from regression.call import KernelError
from regression.partials import difference
from regression.quantities import Partials, diverge

S, R, H, D = 3, 2, 3, 4


def some_partials() -> Partials:
    generator = np.random.default_rng(5)
    acc = generator.normal(size=(S, R, H, D)).astype(np.float32)
    return Partials(acc=acc, max_sum=generator.normal(size=(S, R, H, 2)).astype(np.float32))


def changed(partials: Partials, quantity: str, place: tuple[int, ...]) -> Partials:
    copy = Partials(acc=partials.acc.copy(), max_sum=partials.max_sum.copy())
    copy.quantity(quantity)[place] = np.nextafter(copy.quantity(quantity)[place], np.float32(np.inf))
    return copy


def digests(partials: Partials) -> Array:
    return digest_partials(torch.from_numpy(partials.acc), torch.from_numpy(partials.max_sum))


def test_equal_partials_do_not_diverge() -> None:
    assert diverge(some_partials(), some_partials()) is None


@given(
    split=st.integers(0, S - 1),
    row=st.integers(0, R - 1),
    head=st.integers(0, H - 1),
    dim=st.integers(0, D - 1),
)
def test_a_changed_numerator_is_named_with_its_dimension(split: int, row: int, head: int, dim: int) -> None:
    found = diverge(some_partials(), changed(some_partials(), "numerator", (split, row, head, dim)))
    assert found is not None
    assert (found.quantity, found.split, found.row, found.head) == ("numerator", split, row, head)
    assert found.dimension == dim
    assert found.ulps == 1
    assert found.counts == {"max": 0, "sum": 0, "numerator": 1}


@pytest.mark.parametrize("quantity", ["max", "sum"])
def test_a_changed_scalar_comes_before_the_numerator_it_spoils(quantity: str) -> None:
    got = changed(changed(some_partials(), "numerator", (1, 1, 2, 3)), quantity, (1, 1, 2))
    found = diverge(some_partials(), got)
    assert found is not None
    assert (found.quantity, found.split, found.row, found.head) == (quantity, 1, 1, 2)
    assert found.dimension is None


def test_an_earlier_split_comes_before_an_earlier_quantity() -> None:
    got = changed(changed(some_partials(), "max", (2, 0, 0)), "numerator", (0, 1, 1, 0))
    found = diverge(some_partials(), got)
    assert found is not None
    assert (found.split, found.quantity) == (0, "numerator")


@given(
    quantity=st.sampled_from(["max", "sum", "numerator"]),
    split=st.integers(0, S - 1),
    row=st.integers(0, R - 1),
)
def test_a_digest_sees_every_quantity(quantity: str, split: int, row: int) -> None:
    plain = some_partials()
    got = changed(plain, quantity, (split, row, 0) + ((0,) if quantity == "numerator" else ()))
    found = difference(digests(plain), digests(got))
    assert found is not None
    assert (found.first_split, found.first_row, found.differing, found.compared) == (split, row, 1, S * R)


def test_digests_of_equal_partials_agree_whatever_the_memory_order() -> None:
    plain = some_partials()
    turned = Partials(acc=np.asfortranarray(plain.acc), max_sum=plain.max_sum)
    assert difference(digests(plain), digests(turned)) is None


def test_digests_of_another_shape_are_refused() -> None:
    with pytest.raises(KernelError, match="partials of"):
        difference(np.zeros((2, 3), np.uint64), np.zeros((3, 2), np.uint64))
