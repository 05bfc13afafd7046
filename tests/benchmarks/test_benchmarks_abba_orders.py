"""Orders of captures and blocks are balanced, mirrored and drawn by a fair coin."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.abba import orders
from benchmarks.abba.orders import ABBA, BAAB
from benchmarks.abba.sampling import SIDES


@given(seed=st.integers(0, 10**6), kept=st.integers(1, 8))
def test_a_round_holds_every_order_and_its_mirror(seed: int, kept: int) -> None:
    one, other = orders.draw(random.Random(seed), kept)
    assert other == one.mirrored and one == other.mirrored
    blocks = Counter(one.blocks[1:] + other.blocks[1:])
    assert blocks == {ABBA: kept, BAAB: kept}
    assert sorted(one.captures) == sorted(SIDES) and one.captures != other.captures
    assert abs(one.blocks[1:].count(ABBA) - one.blocks[1:].count(BAAB)) <= 1


def test_each_block_holds_each_side_twice_with_one_mean_time() -> None:
    for block in (ABBA, BAAB):
        for side in SIDES:
            turns = [at for at, taken in enumerate(block) if taken == side]
            assert len(turns) == 2 and sum(turns) == 3


def test_the_coin_is_fair() -> None:
    source = random.Random(7)
    firsts = Counter(orders.draw(source, 2)[0].captures[0] for _ in range(2000))
    assert 880 < firsts["base"] < 1120
