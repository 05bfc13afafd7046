"""Where a group's bits first part from its golden: split, row, head and quantity."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fixtures import inputs as fixture_inputs
from fixtures.golden import Golden, digest_partials
from fixtures.groups import Group
from regression import bits, call, references, schedule, stored
from regression.bits import Difference
from regression.partials import difference
from regression.quantities import Divergence, Partials, diverge
from regression.references import Reference
from regression.results import PartialDifference
from regression.selection import select_one
from regression.target import Target, TargetError


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What differs in one group.

    `digests` is None when all agree or there is no golden. `places` are the differing (split, row) pairs.
    `output` is the first element that differs from the golden or, without one, from the reference's output.
    """

    group: Group
    arch: str
    splits: int
    has_golden: bool
    digests: PartialDifference | None
    places: tuple[tuple[int, int], ...]
    reference: Reference | None
    divergence: Divergence | None
    output: Difference | None

    @property
    def differs(self) -> bool:
        """Some bit is not the golden's or the reference's."""
        return any(part is not None for part in (self.digests, self.divergence, self.output))

    @property
    def judged(self) -> bool:
        """There was something to compare with."""
        return self.has_golden or self.reference is not None

    def tokens(self, split: int) -> schedule.Span:
        """The tokens of a split."""
        capacity = self.group.page * -(-self.group.longest // self.group.page)
        return schedule.span(self.splits, schedule.longest_live(self.group.row_lens, capacity), split)


def find(group_id: str, target: Target, *, against: Path | None) -> Finding:
    """Replay one group and compare it quantity by quantity with a reference.

    The reference is `against`, else the golden's stored partials, else a build with its digests.
    TargetError when the target has no debug operation, FixtureError when there is no such group.
    """
    group = select_one(group_id)
    golden = stored.reader(target.arch)(group.id)
    inputs = fixture_inputs.materialise(group, device=target.device)
    if target.partials is None:
        raise TargetError(f"{target.label} has no debug operation: only outputs can be compared, not located")
    out = call.attend(target, inputs, watch_caches=False).out
    acc, max_sum = call.partials(target, inputs)
    got = Partials(acc=acc.numpy(), max_sum=max_sum.numpy())
    reference = references.choose(group, target, golden, against=against)
    expected = golden.out if golden is not None else None if reference is None else reference.out
    digests = digest_partials(acc, max_sum)
    return Finding(
        group=group,
        arch=target.arch,
        splits=acc.shape[0],
        has_golden=golden is not None,
        digests=None if golden is None else difference(golden.digests, digests),
        places=() if golden is None else _places(golden, digests),
        reference=reference,
        divergence=None if reference is None else diverge(reference.partials, got),
        output=None if expected is None else bits.first_difference(expected.numpy(), out.numpy()),
    )


def _places(golden: Golden, digests: bits.Array) -> tuple[tuple[int, int], ...]:
    return tuple((int(s), int(r)) for s, r in np.argwhere(golden.digests != digests))
