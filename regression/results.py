"""What a replay found, per group and over all."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from regression.bits import Difference


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Distance to the FP64 oracle. `budget` = 1.02 * floor + 2e-6; `disagreements` counts fp16 elements."""

    relative_l2: float
    floor: float
    budget: float
    disagreements: int
    not_finite: int

    @property
    def within(self) -> bool:
        """Every element is finite where the truth is, and the error is in the budget. A NaN error is not."""
        return self.not_finite == 0 and self.relative_l2 <= self.budget


@dataclass(frozen=True, kw_only=True)
class PartialDifference:
    """Digests of partials that differ from the golden's: how many (split, row) pairs, and the first."""

    differing: int
    compared: int
    first_split: int
    first_row: int

    def text(self) -> str:
        """One line for a person."""
        return (
            f"{self.differing} of {self.compared} (split, row) pairs differ, "
            f"first split {self.first_split}, row {self.first_row}"
        )


@dataclass(frozen=True, kw_only=True)
class GroupResult:
    """One group's replay.

    `mismatching` is None without a golden. `partials` is 'ok', 'differ', 'no golden' or 'not run' (not asked
    for, or the target has no debug operation). `trend` compares relative L2 with the golden's: 'improved',
    'worsened' or 'tied' when bits changed, 'same' when none did, None without a golden.
    """

    id: str
    instance: str
    context: int
    elements: int
    mismatching: int | None
    first: Difference | None = None
    accuracy: Accuracy
    golden_accuracy: Accuracy | None = None
    trend: str | None = None
    partials: str = "not run"
    partial_difference: PartialDifference | None = None
    unwritten: int = 0
    strayed: int = 0
    modified_inputs: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def bitwise(self) -> bool | None:
        """All output bits are the golden's; None without a golden."""
        return None if self.mismatching is None else self.mismatching == 0

    def as_json(self) -> dict[str, Any]:
        """Plain values; numbers that JSON lacks become null."""
        plain = asdict(self) | {"bitwise": self.bitwise, "within_budget": self.accuracy.within}
        return {key: _plain(value) for key, value in plain.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
