"""Orders of captures and blocks: drawn at random, each balanced by its mirror image."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.abba.sampling import BASE, CANDIDATE

ABBA = (BASE, CANDIDATE, CANDIDATE, BASE)
BAAB = (CANDIDATE, BASE, BASE, CANDIDATE)
_OTHER = {BASE: CANDIDATE, CANDIDATE: BASE}


@dataclass(frozen=True, kw_only=True)
class Order:
    """Of one pair: which sides are captured in turn, and the turns of each block, the warm-up's first."""

    captures: tuple[str, str]
    blocks: tuple[tuple[str, ...], ...]

    @property
    def mirrored(self) -> Order:
        """The same with the sides swapped."""
        first, second = self.captures
        return Order(captures=(second, first), blocks=tuple(swapped(block) for block in self.blocks))


def draw(source: random.Random, kept_blocks: int) -> tuple[Order, Order]:
    """A round's two orders, mirror images of each other, in random sequence.

    Within a pair ABBA and BAAB differ in number by at most one; over the round they are equal.
    """
    first = source.choice((BASE, CANDIDATE))
    kept = [(ABBA, BAAB)[at % 2] for at in range(kept_blocks)]
    source.shuffle(kept)
    order = Order(captures=(first, _OTHER[first]), blocks=(source.choice((ABBA, BAAB)), *kept))
    return (order, order.mirrored) if source.random() < 0.5 else (order.mirrored, order)


def swapped(block: tuple[str, ...]) -> tuple[str, ...]:
    """ABBA for BAAB and back."""
    return tuple(_OTHER[side] for side in block)
