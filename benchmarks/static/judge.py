"""Static costs against limits and against the base. Each limit is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.static.costs import Costs
from benchmarks.static.limits import LIMITS
from evidence.record import Reason

Rule = tuple[str, Callable[[Costs], bool], Callable[[Costs], str]]
Step = tuple[str, Callable[[Costs, Costs], bool], Callable[[Costs, Costs], str]]

RULES: tuple[Rule, ...] = (
    (
        "spills",
        lambda c: c.spill_bytes > 0,
        lambda c: (
            f"{c.spill_store_bytes} bytes of spill stores, {c.spill_load_bytes} of loads; none are allowed"
        ),
    ),
    (
        "registers-per-block",
        lambda c: c.registers_per_block > LIMITS[c.arch].registers,
        lambda c: f"{c.registers_per_block} registers a block, {c.arch} has {LIMITS[c.arch].registers}",
    ),
    (
        "shared-per-block",
        lambda c: c.shared_bytes > LIMITS[c.arch].shared_bytes_per_block,
        lambda c: (
            f"{c.shared_bytes} bytes of shared memory a block, "
            f"{c.arch} allows {LIMITS[c.arch].shared_bytes_per_block}"
        ),
    ),
)
STEPS: tuple[Step, ...] = (
    (
        "more-spills",
        lambda new, old: new.spill_bytes > old.spill_bytes,
        lambda new, old: f"{new.spill_bytes} bytes spilled, the base {old.spill_bytes}",
    ),
    (
        "occupancy-step",
        lambda new, old: new.blocks_per_multiprocessor < old.blocks_per_multiprocessor,
        lambda new, old: (
            f"{new.blocks_per_multiprocessor} blocks a multiprocessor, "
            f"the base {old.blocks_per_multiprocessor}"
        ),
    ),
)


def complaints(candidate: Sequence[Costs], base: Sequence[Costs] | None) -> tuple[Reason, ...]:
    """Everything that is over a limit, or a step worse than the base; `base` is None when there is none."""
    found = [
        Reason(code=code, text=f"{costs.arch} {costs.kernel}: {text(costs)}")
        for costs in candidate
        for code, broken, text in RULES
        if broken(costs)
    ]
    return (*found, *_against(candidate, base or ()))


def _against(candidate: Sequence[Costs], base: Sequence[Costs]) -> list[Reason]:
    new = {costs.kernel: costs for costs in candidate}
    found = [
        Reason(code=code, text=f"{old.arch} {old.kernel}: {text(new[old.kernel], old)}")
        for old in base
        if old.kernel in new
        for code, broken, text in STEPS
        if broken(new[old.kernel], old)
    ]
    gone = [f"{old.arch} {old.kernel}" for old in base if old.kernel not in new]
    return [*found, *(Reason(code="kernel-vanished", text=f"{name}: only in the base") for name in gone)]
