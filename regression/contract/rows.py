"""Rows of the table of alignments and boundaries: bits of the control, near the truth, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fixtures import oracle
from fixtures.cases import Spec, implementation
from fixtures.cases.environment import BrokenPromiseError
from fixtures.cases.execute import Executor, Others, others_of
from fixtures.cases.realise import control, over_capacity
from fixtures.cases.refused import as_bytes
from regression import call
from regression.contract.arena import Arena
from regression.contract.gates import Violation, over_budget
from regression.target import Target

# Above it, hashing would read memory that nothing ever touched.
WATCHED_BYTES = 1 << 27


class InputsChangedError(BrokenPromiseError):
    """A call wrote to its inputs."""


class ReturnedError(BrokenPromiseError):
    """A call returned what it may not."""


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
            attend=_watched(target, target.attend),
            others=_watched_others(target),
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
        except (call.KernelError, BrokenPromiseError) as error:
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
        with call.failures(self.target, passing=(BrokenPromiseError,)):
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
    if spec.cpu and not implementation.has_others(target.extension):
        return ("another CPU implementation",)
    return ()


def _watched_others(target: Target) -> Others | None:
    others = others_of(target.extension)
    return None if others is None else lambda name: _watched(target, others(name))


def _watched(target: Target, attend: Callable[..., Any]) -> Callable[..., None]:
    """The operation, with its inputs compared before and after, also where it refuses; and what it returns.

    Not inside a capture, and not on a stream beside the default one: looking would end what runs at once.
    """

    def watched(*tensors: Tensor, out: Tensor, **options: Any) -> None:
        if target.device == "cuda" and torch.cuda.current_stream() != torch.cuda.default_stream():
            _checked(attend(*tensors, out=out, **options), out)
            return
        with _unchanged(tensors, out):
            returned = attend(*tensors, out=out, **options)
        _checked(returned, out)

    return watched


@contextmanager
def _unchanged(tensors: Sequence[Tensor], out: Tensor) -> Iterator[None]:
    """InputsChangedError in the place of whatever came out, when a byte of the tensors did."""
    before = _fingerprints(tensors, out)
    try:
        yield
    finally:
        after = _fingerprints(tensors, out)
        changed = [name for name, a, b in zip(call.INPUTS, before, after, strict=True) if a != b]
        if changed:
            raise InputsChangedError(f"inputs changed: {', '.join(changed)}")


def _checked(returned: object, out: Tensor) -> None:
    try:
        call.check_returned(returned, out)
    except call.KernelError as error:
        raise ReturnedError(str(error)) from error


def _fingerprints(tensors: Sequence[Tensor], out: Tensor) -> list[str | None]:
    return [_fingerprint(tensor, out) if _is_watched(tensor) else None for tensor in tensors]


def _fingerprint(tensor: Tensor, out: Tensor) -> str:
    """Of the whole allocation; where the output lies in it too, of the tensor alone."""
    shared = tensor.untyped_storage().data_ptr() == out.untyped_storage().data_ptr()
    return call.fingerprint(as_bytes(tensor).clone() if shared else tensor)


def _is_watched(tensor: Tensor) -> bool:
    return not tensor.is_meta and tensor.untyped_storage().nbytes() <= WATCHED_BYTES


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
