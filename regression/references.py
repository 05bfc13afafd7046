"""A run to compare partials with, value by value: the golden itself, or a build that should give its bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from fixtures import inputs as fixture_inputs
from fixtures.golden import Golden, digest_partials
from fixtures.groups import Group
from regression import call, stored
from regression.bits import Array
from regression.quantities import Partials
from regression.target import Target, TargetError, base_build, built, from_path, revision_build


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one target makes of one group: out fp16 [R, H, D], partials and their digests uint64 [S, R]."""

    out: Tensor
    partials: Partials
    digests: Array


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A run to compare with. `trusted` when its digests are the golden's; None without a golden.

    `source` is what ran, None for stored values.
    """

    label: str
    run: Run
    trusted: bool | None
    source: Target | None


def run(group: Group, target: Target) -> Run:
    """Run a group through a target. TargetError when that has no debug operation."""
    if target.partials is None:
        raise TargetError(f"{target.label} has no debug operation: outputs can be compared, but not located")
    inputs = fixture_inputs.materialise(group, device=target.device)
    acc, max_sum = call.partials(target, inputs)
    return Run(
        out=call.attend(target, inputs).out,
        partials=Partials(acc=acc.numpy(), max_sum=max_sum.numpy()),
        digests=digest_partials(acc, max_sum),
    )


def choose(group: Group, target: Target, golden: Golden | None, *, against: Path | None) -> Reference | None:
    """`against` if given; else the first source that is the golden bit for bit, else the first that runs."""
    if against is not None:
        return _reference(group, from_path(against, arch=target.arch), golden)
    if golden is not None and golden.acc is not None and golden.max_sum is not None:
        return _from_values(golden, target, group)
    return _first_trusted(group, target, golden)


def _reference(group: Group, source: Target, golden: Golden | None) -> Reference:
    found = run(group, source)
    trusted = None if golden is None else bool(np.array_equal(golden.digests, found.digests))
    return Reference(label=source.label, run=found, trusted=trusted, source=source)


def _first_trusted(group: Group, target: Target, golden: Golden | None) -> Reference | None:
    fallback = None
    for source in _sources(target):
        reference = _reference(group, source, golden)
        if reference.trusted:
            return reference
        fallback = fallback or reference
    return fallback


def _sources(target: Target) -> Iterator[Target]:
    """The host backends of the golden's revision, of the base and of this checkout, where they can be had."""
    makers: tuple[Callable[[], Target], ...] = (
        lambda: revision_build("host", target.arch, stored.revision(target.arch)),
        lambda: base_build("host", target.arch, of=target.side),
        lambda: built("host", target.arch),
    )
    for make in makers:
        try:
            source = make()
        except TargetError:
            continue
        if source.subject.sha256 != target.subject.sha256:
            yield source


def _from_values(golden: Golden, target: Target, group: Group) -> Reference:
    """The stored partials of the active splits, padded with the neutral state that all others hold."""
    assert golden.acc is not None and golden.max_sum is not None
    splits = golden.digests.shape[0]
    acc = _padded(golden.acc.numpy(), splits, 0.0)
    max_sum = _padded(golden.max_sum.numpy(), splits, 0.0)
    max_sum[golden.acc.shape[0] :, ..., 0] = -np.inf
    label = f"stored partials of the golden {group.id} for {target.arch}"
    kept = Run(out=golden.out, partials=Partials(acc=acc, max_sum=max_sum), digests=golden.digests)
    return Reference(label=label, run=kept, trusted=True, source=None)


def _padded(values: Array, splits: int, fill: float) -> Array:
    whole = np.full((splits, *values.shape[1:]), fill, dtype=values.dtype)
    whole[: len(values)] = values
    return whole
