"""What is sampled, level by level, and what a machine must offer. Voids and warm-ups are kept, and marked."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

BASE, CANDIDATE = "base", "candidate"
SIDES = (BASE, CANDIDATE)


@dataclass(frozen=True, kw_only=True)
class State:
    """The machine around a block; None where it can't be seen. `throttle` names what slows the clocks."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    throttle: tuple[str, ...] = ()
    errors: int | None = None  # uncorrected ECC errors and Xid events so far
    processes: int | None = None  # others' on the same GPU


@dataclass(frozen=True, kw_only=True)
class Leg:
    """One side's turn in a block: µs per call of each replay; outputs that differ from an eager call's."""

    side: str
    times_us: tuple[float, ...]
    wrong: int = 0

    @property
    def log_us(self) -> float:
        """Log of the median replay."""
        return math.log(statistics.median(self.times_us))


@dataclass(frozen=True, kw_only=True)
class Block:
    """Four legs, ABBA or BAAB, A being the base. `void` says why it doesn't count."""

    legs: tuple[Leg, ...]
    warm_up: bool
    state: State = field(default_factory=State)
    void: str | None = None

    @property
    def order(self) -> str:
        """ABBA or BAAB."""
        return "".join("A" if leg.side == BASE else "B" for leg in self.legs)

    @property
    def log_ratio(self) -> float:
        """Log of candidate ÷ base."""
        means = {side: statistics.fmean(x.log_us for x in self.legs if x.side == side) for side in SIDES}
        return means[CANDIDATE] - means[BASE]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One capture of each side, `first` before the other, and the blocks that were replayed of them.

    `capture_s` is what the captures and the warm-up block took, `blocks_s` the other blocks together.
    """

    first: str
    blocks: tuple[Block, ...]
    capture_s: float = 0.0
    blocks_s: float = 0.0
    void: str | None = None

    @property
    def kept(self) -> tuple[Block, ...]:
        """The blocks that count: neither warm-up nor void."""
        return () if self.void else tuple(b for b in self.blocks if not b.warm_up and b.void is None)

    @property
    def log_ratio(self) -> float:
        """Mean over the kept blocks."""
        return statistics.fmean(block.log_ratio for block in self.kept)


@dataclass(frozen=True, kw_only=True)
class Round:
    """Two pairs captured in mirrored order, all blocks mirrored too: the unit of inference.

    A coin decides which of the two mirror images comes first, so swapping the sides' names changes nothing in
    the distribution: of a kernel against itself, `log_ratio` is symmetric about 0 given all earlier rounds.
    """

    pairs: tuple[Pair, Pair]
    pilot: bool = False

    @property
    def valid(self) -> bool:
        """True when both pairs have a block that counts."""
        return all(pair.kept for pair in self.pairs)

    @property
    def log_ratio(self) -> float:
        """Mean over the two pairs."""
        return statistics.fmean(pair.log_ratio for pair in self.pairs)


class Instance(Protocol):
    """One side, captured and ready to be replayed."""

    @property
    def side(self) -> str: ...


class Bench(Protocol):
    """A machine with both sides on it. `floor_us` is the time of one call that nothing real can beat."""

    @property
    def floor_us(self) -> float: ...
    @property
    def launches(self) -> int: ...  # calls in one sample
    @property
    def note(self) -> str: ...  # what the machine can't tell, empty if nothing

    def capture(self, side: str) -> Instance: ...
    def play(self, order: Sequence[Instance], replays: int) -> tuple[Leg, ...]:
        """Each turn: poison the outputs, time `replays` samples, compare the outputs."""

    def state(self) -> State: ...
    def loaded(self) -> int:
        """A number that grows when code is loaded or compiled."""

    def seconds(self) -> float:
        """A steady clock."""
