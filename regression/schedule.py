"""The split schedule (docs/arithmetic.md, 1), to say which tokens a split holds."""

from __future__ import annotations

from dataclasses import dataclass

TILE_TOKENS = 32


@dataclass(frozen=True, kw_only=True)
class Span:
    """Tokens [first, end) of one split."""

    first: int
    end: int


def longest_live(row_lens: tuple[int, ...], capacity: int) -> int:
    """L: the longest length in (0, capacity], 0 when there is none."""
    return max((length for length in row_lens if 0 < length <= capacity), default=0)


def active_splits(splits: int, length: int) -> int:
    """Of an architecture's `splits`, those that take part for L tokens."""
    return 1 if length <= 128 else min(splits, -(-length // 64))


def span(splits: int, length: int, split: int) -> Span:
    """The tokens of `split`; empty when it is not active."""
    active = active_splits(splits, length)
    if split >= active:
        return Span(first=length, end=length)
    share, extra = divmod(-(-length // TILE_TOKENS), active)
    first = split * share + min(split, extra)
    end = first + share + (split < extra)
    return Span(first=first * TILE_TOKENS, end=min(end * TILE_TOKENS, length))
