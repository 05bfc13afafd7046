"""Bitwise comparison: every changed bit is seen, and the first one is named."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from regression import bits

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, max_side=5)
WORDS = hnp.arrays(np.uint16, SHAPES)


@given(words=WORDS)
def test_equal_bits_never_differ_even_as_nan(words: bits.Array) -> None:
    values = words.view(np.float16)
    assert bits.first_difference(values, values.copy()) is None


@given(words=WORDS, data=st.data())
def test_one_flipped_bit_is_the_first_difference(words: bits.Array, data: st.DataObject) -> None:
    place = tuple(data.draw(st.integers(0, side - 1)) for side in words.shape)
    changed = words.copy()
    changed[place] ^= np.uint16(1 << data.draw(st.integers(0, 15)))
    found = bits.first_difference(words.view(np.float16), changed.view(np.float16))
    assert found is not None
    assert found.index == place
    assert int(found.golden_bits, 16) == words[place]
    assert int(found.got_bits, 16) == changed[place]


@given(words=WORDS, data=st.data())
def test_the_first_of_several_differences_is_the_lowest_in_c_order(
    words: bits.Array, data: st.DataObject
) -> None:
    flat = st.sets(st.integers(0, words.size - 1), min_size=1)
    places = data.draw(flat)
    changed = words.copy().reshape(-1)
    changed[list(places)] ^= np.uint16(1)
    changed = changed.reshape(words.shape)
    found = bits.first_difference(words.view(np.float16), changed.view(np.float16))
    assert found is not None
    assert np.ravel_multi_index(found.index, words.shape) == min(places)
    assert int(bits.mismatches(words.view(np.float16), changed.view(np.float16)).sum()) == len(places)


def test_signs_of_zero_and_nan_payloads_are_different_bits() -> None:
    assert bits.first_difference(np.float32([0.0]), np.float32([-0.0])) is not None
    payloads = np.array([0x7FFF, 0x7E5A], np.uint16).view(np.float16)
    assert bits.first_difference(payloads[:1], payloads[1:]) is not None


def test_text_shows_both_values_their_bits_and_the_oracle() -> None:
    found = bits.first_difference(np.float16([1, 2]), np.float16([1, 3]), np.array([1.0, 2.25]))
    assert found is not None
    assert found.text() == "[1]: golden 2 (0x4000), got 3 (0x4200), oracle 2.25"


@pytest.mark.parametrize("other", [np.zeros(3, np.float16), np.zeros(2, np.float32)])
def test_arrays_of_another_shape_or_type_are_refused(other: bits.Array) -> None:
    with pytest.raises(ValueError, match="not comparable"):
        bits.mismatches(np.zeros(2, np.float16), other)


@given(a=st.floats(-(2.0**99), 2.0**99, width=32), steps=st.integers(0, 40))
@example(a=-1e-45, steps=3)
def test_ulps_count_steps(a: float, steps: int) -> None:
    start = value = np.float32(a)
    for _ in range(steps):
        value = np.nextafter(value, np.float32(np.inf), dtype=np.float32)
    assert bits.ulps(np.array([start]), np.array([value]))[0] == steps
