"""The table's rows on one library, in a worker: their outcomes, and the debug operation on some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from fixtures.cases.execute import Executor
from fixtures.cases.realise import over_capacity, realise
from fixtures.cases.spec import Spec
from sanitizer.memory import Arena

PARTIALS = "grouped_e4m3_fp32_partials"
FEWEST_ROWS, MOST_ROWS = 2, 8


@dataclass(frozen=True, kw_only=True)
class Rows:
    """`own`: this project built the library, so refusals must be worded as the table says.

    `untouched`: what a call may not read stays as it was allocated. Poison would be initialised memory, in
    which initcheck sees nothing.
    """

    extension: Any
    own: bool
    untouched: bool
    executor: Executor = field(init=False)

    def __post_init__(self) -> None:
        executor = replace(Executor.of(self.extension), own_words=self.own, judge=unexplained)
        object.__setattr__(self, "executor", executor)

    def complaint(self, spec: Spec) -> str | None:
        """What is wrong with the row's outcome, None if nothing is; a fault ends the process."""
        poisoned = replace(spec, poison=not self.untouched or spec.refusal is not None)
        with Arena(self.executor.device) as arena:
            found = self.executor.complaint(poisoned, arena.allocate)
            if found is None and has_partials(spec):
                self._partials(poisoned, arena)
        return found

    def _partials(self, spec: Spec, arena: Arena) -> None:
        """Reads all that must have been written."""
        made = realise(spec, arena.allocate)
        acc, max_sum = getattr(self.extension, PARTIALS)(*made.tensors, **made.scales)
        (acc.sum() + max_sum.sum()).item()


def unexplained(spec: Spec, lens: Sequence[int], out: Tensor) -> Iterator[str]:
    """NaN from inputs without any, which the control may have too: of memory that nobody wrote, perhaps."""
    if spec.nans or spec.wild or spec.special:
        return
    for row in (out.isnan().cpu() & ~over_capacity(spec, lens)).any(dim=2).any(dim=1).nonzero():
        yield f"lengths {tuple(lens)}: NaN in row {int(row)} of inputs without one: uninitialised memory?"


def has_partials(spec: Spec) -> bool:
    """Rows that are few, many, empty or over the capacity: the debug operation writes them by other rules."""
    odd = min(spec.lens) <= 0 or max(spec.lens) > spec.capacity
    return spec.refusal is None and (odd or spec.rows in (FEWEST_ROWS, MOST_ROWS))
