"""Rows of the table of alignments and boundaries: bits of the control, near the truth, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fixtures import oracle
from fixtures.cases import Spec
from fixtures.cases.execute import Executor
from fixtures.cases.realise import control, over_capacity
from regression import call
from regression.contract.arena import Arena
from regression.contract.gates import Violation, over_budget
from regression.target import Target

# Above it, hashing would read memory that nothing ever touched.
WATCHED_BYTES = 1 << 27


class InputsChangedError(Exception):
    """A call wrote to its inputs."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A target's executor, and the truths that were computed for it."""

    target: Target
    executor: Executor
    truths: dict[tuple[object, ...], Tensor] = field(repr=False)

    @classmethod
    def of(cls, target: Target) -> Rows:
        """For a target of any kind."""
        truths: dict[tuple[object, ...], Tensor] = {}
        executor = Executor(
            attend=_watched(target),
            device=target.device,
            workspace=None if target.extension is None else target.extension.workspace,
            own_words=is_own(target),
            judge=lambda spec, lens, out: _far_from_truth(truths, spec, lens, out),
        )
        return cls(target=target, executor=executor, truths=truths)

    def check(self, spec: Spec) -> tuple[Violation, ...]:
        """What of the row's outcome is not as the table says."""
        arena = Arena(device=self.target.device)
        gate = "layout" if spec.refusal is None else "refusal"
        try:
            found = [Violation(gate=gate, text=text) for text in self._complaints(spec, arena)]
        except InputsChangedError as error:
            return (Violation(gate="output-written", text=f"{spec.name}: {error}"),)
        except call.KernelError as error:
            return (Violation(gate="kernel-failed", text=f"{spec.name}: {error}"),)
        strayed = arena.strayed()
        if strayed:
            found.append(
                Violation(gate="output-written", text=f"{spec.name}: {strayed} bytes beside tensors")
            )
        return tuple(found)

    def _complaints(self, spec: Spec, arena: Arena) -> Iterator[str]:
        if spec.refusal is not None:
            # An exception is what is due here.
            yield from self._named(spec, arena)
            return
        with call.failures(self.target, passing=(InputsChangedError,)):
            yield from list(self._named(spec, arena))

    def _named(self, spec: Spec, arena: Arena) -> Iterator[str]:
        for text in self.executor.complaints(spec, arena.allocate):
            yield f"{spec.name}: {text}"


def is_own(target: Target) -> bool:
    """Whether this project built it; others needn't refuse in the same words, nor all that it refuses."""
    return target.subject.code_digest is not None


def uncovered(spec: Spec, target: Target) -> tuple[str, ...]:
    """Why a row says nothing of the target; nothing where it does."""
    if target.subject.backend not in spec.backends:
        return (f"not for {target.subject.backend}",)
    if spec.refusal is not None and not spec.refusal.by_all and not is_own(target):
        return ("a refusal of this kernel alone",)
    return ()


def _watched(target: Target) -> Callable[..., Any]:
    """The operation, with its inputs compared before and after.

    Not inside a capture, and not on a stream beside the default one: looking would end what runs at once.
    """

    def attend(*tensors: Tensor, out: Tensor, **options: Any) -> None:
        if target.device == "cuda" and torch.cuda.current_stream() != torch.cuda.default_stream():
            target.attend(*tensors, out=out, **options)
            return
        before = _fingerprints(tensors)
        target.attend(*tensors, out=out, **options)
        after = _fingerprints(tensors)
        changed = [name for name, a, b in zip(call.INPUTS, before, after, strict=True) if a != b]
        if changed:
            raise InputsChangedError(f"inputs changed: {', '.join(changed)}")

    return attend


def _fingerprints(tensors: Sequence[Tensor]) -> list[str | None]:
    return [call.fingerprint(t) if t.untyped_storage().nbytes() <= WATCHED_BYTES else None for t in tensors]


def _far_from_truth(
    truths: dict[tuple[object, ...], Tensor], spec: Spec, lens: Sequence[int], out: Tensor
) -> Iterator[str]:
    """A complaint when the output is over its budget; the truth is the control's."""
    if spec.wild:
        return
    key = spec.contents(lens)
    if key not in truths:
        truths[key] = oracle.attend(control(spec, lens)).out
    truth = truths[key].masked_fill(over_capacity(spec, lens), float("nan"))
    yield from over_budget(out, truth)
