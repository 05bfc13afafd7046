"""One comparison: a pilot that chooses the design, then rounds until it is decided or the budget is spent."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.abba import guards, orders, sequence, variance
from benchmarks.abba.decision import UNKNOWN, Rule
from benchmarks.abba.guards import AlarmError
from benchmarks.abba.orders import Order
from benchmarks.abba.sampling import Bench, Block, Instance, Pair, Round, State
from benchmarks.abba.sequence import Interval
from benchmarks.abba.variance import Components, Costs

PILOT_ROUNDS = 3
PILOT_BLOCKS = 2
PLANNED_ROUNDS = 30  # fewer say little, however precise each of them is
LOOK_GROWTH = 1.05  # the sequence may be looked at any time; fewer looks cost nothing but a little delay
REPLAYS = 1


@dataclass(frozen=True, kw_only=True)
class Design:
    """What the pilot chose: kept blocks per pair, from the variances and costs that it found."""

    kept_blocks: int
    components: Components
    costs: Costs


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All that was sampled, pilot, warm-ups and voids included, and what it says. Ends are log ratios."""

    rounds: tuple[Round, ...]
    interval: Interval
    word: str
    rejects: bool
    seconds: float
    launches: int
    design: Design | None = None
    components: Components | None = None
    alarm: AlarmError | None = None
    note: str = ""

    @property
    def counted(self) -> tuple[Round, ...]:
        """The rounds that the interval rests on."""
        return counted(self.rounds)


def compare(bench: Bench, rule: Rule, *, budget_s: float, source: random.Random) -> Comparison:
    """Measure until `rule` is settled or `budget_s` is over; a guard's alarm ends it as unknown."""
    started = bench.seconds()
    rounds: list[Round] = []
    design: Design | None = None
    try:
        rounds.extend(_rounds(bench, source, PILOT_BLOCKS, PILOT_ROUNDS, pilot=True))
        design = choose(rounds, started + budget_s - bench.seconds())
        _sample(bench, rule, design, rounds, source, started + budget_s)
    except AlarmError as alarm:
        return _alarmed(alarm, rounds, design, bench, bench.seconds() - started)
    except RuntimeError as error:  # of a launch or a capture
        failure = AlarmError("kernel-failed", str(error))
        return _alarmed(failure, rounds, design, bench, bench.seconds() - started)
    return _conclude(rule, design, rounds, bench, bench.seconds() - started)


def failed(alarm: AlarmError) -> Comparison:
    """A comparison that could not even begin."""
    nothing = Interval(low=-math.inf, high=math.inf)
    return Comparison(
        rounds=(),
        interval=nothing,
        word=UNKNOWN,
        rejects=alarm.rejects,
        seconds=0.0,
        launches=0,
        alarm=alarm,
    )


def counted(rounds: list[Round] | tuple[Round, ...]) -> tuple[Round, ...]:
    """Valid rounds after the pilot."""
    return tuple(one for one in rounds if one.valid and not one.pilot)


def estimate(rounds: list[Round] | tuple[Round, ...], rule: Rule) -> Interval:
    """The confidence sequence's interval after these rounds."""
    values = [one.log_ratio for one in counted(rounds)]
    pilot = [one.log_ratio for one in rounds if one.valid and one.pilot]
    return sequence.interval(values, pilot=pilot, alpha=rule.alpha_each)


def choose(pilot: list[Round], rest_s: float) -> Design:
    """The design that a pilot's variances and costs suggest, with rounds enough in the budget."""
    found, price = variance.components([pilot]), variance.costs(pilot)
    affordable = int((rest_s / (2 * PLANNED_ROUNDS) - price.pair_s) / max(1e-9, price.block_s))
    blocks = max(1, min(affordable, variance.best_blocks(found, price)))
    return Design(kept_blocks=blocks, components=found, costs=price)


def _sample(
    bench: Bench, rule: Rule, design: Design, rounds: list[Round], source: random.Random, end: float
) -> None:
    look = rule.least_rounds
    while bench.seconds() < end:
        rounds.extend(_rounds(bench, source, design.kept_blocks, 1, pilot=False))
        count = len(counted(rounds))
        if count < look:
            continue
        look = max(count + 1, int(count * LOOK_GROWTH))
        if rule.settled(estimate(rounds, rule), count):
            return


def _rounds(
    bench: Bench, source: random.Random, kept_blocks: int, count: int, *, pilot: bool
) -> Iterator[Round]:
    for _ in range(count):
        first, second = orders.draw(source, kept_blocks)
        yield Round(pairs=(measure(bench, first), measure(bench, second)), pilot=pilot)


def measure(bench: Bench, order: Order) -> Pair:
    """Capture both sides in turn, replay a warm-up block and the others; guards are read around each."""
    start = bench.seconds()
    instances = {side: bench.capture(side) for side in order.captures}
    turns = [[instances[side] for side in block] for block in order.blocks]
    warm_up = _block(bench, turns[0], bench.state(), warm_up=True)
    middle, loaded, kept = bench.seconds(), bench.loaded(), [warm_up]
    for block in turns[1:]:
        kept.append(_block(bench, block, kept[-1].state, warm_up=False))
    return Pair(
        first=order.captures[0],
        blocks=tuple(kept),
        capture_s=middle - start,
        blocks_s=bench.seconds() - middle,
        void=guards.void_by_load(loaded, bench.loaded()),
    )


def _block(bench: Bench, turns: list[Instance], before: State, *, warm_up: bool) -> Block:
    legs = bench.play(turns, REPLAYS)
    after = bench.state()
    guards.check(legs, bench.floor_us)
    return Block(legs=legs, warm_up=warm_up, state=after, void=guards.void(before, after))


def _conclude(rule: Rule, design: Design, rounds: list[Round], bench: Bench, seconds: float) -> Comparison:
    found, count = estimate(rounds, rule), len(counted(rounds))
    return Comparison(
        rounds=tuple(rounds),
        interval=found,
        word=rule.word(found, count),
        rejects=rule.rejects(found, count),
        seconds=seconds,
        launches=bench.launches,
        design=design,
        components=variance.components([rounds]),
        note=bench.note,
    )


def _alarmed(
    alarm: AlarmError, rounds: list[Round], design: Design | None, bench: Bench, seconds: float
) -> Comparison:
    return replace(
        failed(alarm),
        rounds=tuple(rounds),
        seconds=seconds,
        launches=bench.launches,
        design=design,
        note=bench.note,
    )
