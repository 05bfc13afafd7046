"""Where a group's bits first part from its golden: split, row, head and quantity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fixtures.golden import Golden
from fixtures.groups import Group
from regression import bits, narrow, references, schedule, stored
from regression.bits import Difference
from regression.narrow import Place
from regression.partials import difference
from regression.quantities import Divergence, diverge
from regression.references import Reference, Run
from regression.results import PartialDifference
from regression.selection import select_one
from regression.target import Target


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What differs in one group.

    `digests` is None when all agree or there is no golden. `places` are the differing (split, row) pairs.
    `output` is the first element that differs from the golden or, without one, from the reference's output.
    `token` is the first token whose arrival makes the divergent split and row differ, where that is known.
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
    token: int | None = None

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
    TargetError when the target has no debug operation, SelectionError when there is no such group.
    """
    group = select_one(group_id)
    golden = stored.reader(target.arch)(group.id)
    run = references.run(group, target)
    plain = compare(group, target.arch, run, golden, None)
    if against is None and plain.has_golden and not plain.differs:
        # A reference may take a build, and has nothing to add.
        return plain
    reference = references.choose(group, target, golden, against=against)
    finding = compare(group, target.arch, run, golden, reference)
    return replace(finding, token=_token(finding, target))


def _token(finding: Finding, target: Target) -> int | None:
    """Narrow a divergence down to a token, when the reference can be run again."""
    found, reference = finding.divergence, finding.reference
    if found is None or reference is None or reference.source is None:
        return None
    span, length = finding.tokens(found.split), finding.group.row_lens[found.row]
    place = Place(split=found.split, row=found.row, first=span.first, end=min(span.end, length))
    return narrow.first_token(finding.group, target, reference.source, place) if length > span.first else None


def compare(group: Group, arch: str, run: Run, golden: Golden | None, reference: Reference | None) -> Finding:
    """A run against the golden's output and digests, and against the reference's partials."""
    return Finding(
        group=group,
        arch=arch,
        splits=run.digests.shape[0],
        has_golden=golden is not None,
        digests=None if golden is None else difference(golden.digests, run.digests),
        places=() if golden is None else _places(golden, run),
        reference=reference,
        divergence=None if reference is None else diverge(reference.run.partials, run.partials),
        output=_output(run, golden, reference),
    )


def _places(golden: Golden, run: Run) -> tuple[tuple[int, int], ...]:
    return tuple((int(s), int(r)) for s, r in np.argwhere(golden.digests != run.digests))


def _output(run: Run, golden: Golden | None, reference: Reference | None) -> Difference | None:
    if golden is not None:
        return bits.first_difference(golden.out.numpy(), run.out.numpy())
    return None if reference is None else bits.first_difference(reference.run.out.numpy(), run.out.numpy())
