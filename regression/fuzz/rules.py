"""What must hold of any call: the table's promises, and bits that nothing beside a row may change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from fixtures.cases import Spec
from fixtures.cases.realise import control, to_inputs
from fixtures.draw import below
from fixtures.inputs import Inputs
from regression import bits, call
from regression.call import KernelError
from regression.contract.gates import Violation, different
from regression.contract.rows import Rows
from regression.target import Target

NEIGHBOUR_SALT = 41


def check(spec: Spec, rows: Rows) -> tuple[Violation, ...]:
    """What of a drawn call's outcome is wrong: first the table's promises, then the invariances."""
    found = rows.check(spec)
    if found or spec.refusal is not None:
        return found
    inputs = to_inputs(spec).to(rows.target.device)
    try:
        out = call.attend(rows.target, inputs).out
        return tuple(
            Violation(gate=gate, text=f"{spec.name}: {text}")
            for gate, rule in RULES.items()
            for text in rule(spec, rows.target, inputs, out)
        )
    except KernelError as error:
        return (Violation(gate="kernel-failed", text=f"{spec.name}: {error}"),)


def _repeat(_spec: Spec, target: Target, inputs: Inputs, out: Tensor) -> Iterator[str]:
    """Again, on the workspace as the last call left it."""
    yield from different(out, call.attend(target, inputs, poisoned_workspace=False).out)


def _neighbours(spec: Spec, target: Target, inputs: Inputs, out: Tensor) -> Iterator[str]:
    """One row keeps its query and length, the others get other ones; the longest length stays the longest."""
    longest = max(spec.live(spec.lens))
    if longest == 0:
        return
    row = below(spec.rows, spec.seed, NEIGHBOUR_SALT)
    q, lens = inputs.q.roll(1, dims=0), torch.full_like(inputs.row_lens, longest)
    q[row], lens[row] = inputs.q[row], inputs.row_lens[row]
    changed = dataclasses.replace(inputs, q=q.contiguous(), row_lens=lens)
    for text in different(out[row], call.attend(target, changed).out[row]):
        yield f"row {row} beside other rows: {text}"


def _partials(spec: Spec, target: Target, inputs: Inputs, _out: Tensor) -> Iterator[str]:
    """The state before the combine is the control's, but for rows over the capacity, where all is NaN."""
    if target.partials is None:
        return
    here = call.partials(target, inputs)
    there = call.partials(target, control(spec, spec.lens).to(target.device))
    over = torch.tensor([length > spec.capacity for length in spec.lens])
    for name, ours, theirs in zip(("numerators", "maxima and sums"), here, there, strict=True):
        found = bits.first_difference(theirs[:, ~over].numpy(), ours[:, ~over].numpy())
        if found is not None:
            yield f"{name}: first difference at {found.text().replace('golden', 'control')}"
        if not ours[:, over].isnan().all():
            yield f"{name} of a row over the capacity are not NaN"


RULES: dict[str, Callable[[Spec, Target, Inputs, Tensor], Iterator[str]]] = {
    "repeat": _repeat,
    "neighbours": _neighbours,
    "partials": _partials,
}
