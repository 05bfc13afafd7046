"""Spans of splits tile the tokens exactly."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from regression import schedule


@given(splits=st.sampled_from([80, 108, 132]), length=st.integers(1, 300_000))
def test_spans_cover_every_token_once_in_order(splits: int, length: int) -> None:
    spans = [schedule.span(splits, length, s) for s in range(splits)]
    assert spans[0].first == 0
    assert all(a.end == b.first for a, b in pairwise(spans))
    assert spans[-1].end == length
    live = [span for span in spans if span.end > span.first]
    assert len(live) == schedule.active_splits(splits, length)


@given(splits=st.sampled_from([80, 108, 132]), length=st.integers(129, 300_000))
def test_no_split_has_two_tiles_more_than_another(splits: int, length: int) -> None:
    active = schedule.active_splits(splits, length)
    tiles = [-(-(s.end - s.first) // 32) for s in (schedule.span(splits, length, i) for i in range(active))]
    assert max(tiles) - min(tiles) <= 1
    assert tiles == sorted(tiles, reverse=True)


def test_a_short_prefix_has_one_split() -> None:
    assert schedule.active_splits(80, 128) == 1
    assert schedule.active_splits(80, 129) == 3


def test_longest_live_ignores_inactive_rows_and_rows_over_capacity() -> None:
    assert schedule.longest_live((0, -5, 96, 2000), 1024) == 96
    assert schedule.longest_live((0, 2000), 1024) == 0
