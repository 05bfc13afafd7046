"""One guarded call of a target: poisoned output and workspace, inputs watched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fixtures.inputs import Inputs
from grouped_attention.workspace import stream_handle
from regression import poison
from regression.target import OP, Target

INPUTS = ("q", "k_cache", "v_cache", "block_table", "row_lens")
WORD_BYTES = 8
# Words are summed by their place modulo each of these, which is far faster than hashing what may be hundreds
# of megabytes. They have no common factor, so two words that change places within 8 GB change some sum.
WIDTHS = (1024, 1021, 1019)


class KernelError(Exception):
    """The target raised on inputs that it must take, or returned something of the wrong shape."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one call left behind. `out` is fp16 [R, H, D] on the CPU; the counts are of elements."""

    out: Tensor
    unwritten: int
    strayed: int
    modified_inputs: tuple[str, ...]


def attend(target: Target, inputs: Inputs, *, poisoned_workspace: bool = True) -> Answer:
    """Run the operation once on a poisoned output and workspace, and see whether its inputs stay as they are.

    `poisoned_workspace=False` leaves in the workspace what the last call left.
    """
    before = [fingerprint(tensor) for tensor in inputs.tensors]
    output = poison.output(tuple(inputs.q.shape), inputs.q.device)
    with failures(target):
        options = workspace(target, inputs, poisoned=poisoned_workspace)
        returned = target.attend(*inputs.tensors, **inputs.scales, **options, out=output.out)
        check_returned(returned, output.out)
    after = [fingerprint(tensor) for tensor in inputs.tensors]
    return Answer(
        out=output.out.cpu().clone(),
        unwritten=output.unwritten(),
        strayed=output.strayed(),
        modified_inputs=tuple(
            name for name, one, other in zip(INPUTS, before, after, strict=True) if one != other
        ),
    )


def check_returned(returned: object, out: Tensor) -> None:
    """A caller may use what is returned: it must be `out`, or nothing."""
    same = isinstance(returned, Tensor) and (returned.data_ptr(), returned.shape) == (
        out.data_ptr(),
        out.shape,
    )
    if returned is not None and not same:
        what = f"a {type(returned).__name__}" if not isinstance(returned, Tensor) else "another tensor"
        raise KernelError(f"{what} was returned: write the result into `out`, and return that or nothing")


def partials(target: Target, inputs: Inputs) -> tuple[Tensor, Tensor]:
    """The debug operation's fp32 [S, R, H, D] and [S, R, H, 2] on the CPU. The target must have one.

    A library writes into poisoned buffers; what a callable returns is taken as it is. KernelError when
    elements were left unwritten or a shape is wrong.
    """
    if target.partials is None:
        raise ValueError(f"{target.label} has no debug operation")
    with failures(target):
        if target.extension is None:
            acc, max_sum = target.partials(*inputs.tensors, **inputs.scales)
        else:
            acc, max_sum = _poisoned_partials(target.extension, inputs)
        return _checked(acc.cpu(), max_sum.cpu(), inputs)


def _poisoned_partials(extension: Any, inputs: Inputs) -> tuple[Tensor, Tensor]:
    rows, heads, head_dim = inputs.q.shape
    device = inputs.q.device
    acc = poison.state((extension.splits, rows, heads, head_dim), device)
    max_sum = poison.state((extension.splits, rows, heads, 2), device)
    debug = extension.functions[f"{OP}_partials"]
    debug(*inputs.tensors, acc, max_sum, *inputs.scales.values(), stream_handle(device))
    return acc, max_sum


def _checked(acc: Tensor, max_sum: Tensor, inputs: Inputs) -> tuple[Tensor, Tensor]:
    rows, heads, head_dim = inputs.q.shape
    if acc.shape[1:] != (rows, heads, head_dim) or max_sum.shape != (acc.shape[0], rows, heads, 2):
        raise KernelError(f"partials have shapes {tuple(acc.shape)} and {tuple(max_sum.shape)}")
    left = poison.unwritten_state(acc) + poison.unwritten_state(max_sum)
    if left:
        raise KernelError(f"{left} elements of the partials were never written")
    return acc, max_sum


def fingerprint(tensor: Tensor) -> str:
    """A name for the bytes of a tensor's storage: what lies between the strides counts too."""
    storage = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    if storage.data_ptr() % WORD_BYTES:
        storage = storage.clone()  # a GPU reads words at multiples of their size alone
    whole = storage.numel() // WORD_BYTES * WORD_BYTES
    words = storage[:whole].view(torch.int64)
    found = hashlib.blake2b(storage[whole:].cpu().numpy().tobytes(), digest_size=16)
    for width in WIDTHS:
        folded = len(words) // width * width
        for part in (words[:folded].view(-1, width).sum(dim=0), words[folded:]):
            found.update(part.cpu().numpy().tobytes())
    return found.hexdigest()


@contextmanager
def failures(target: Target, *, passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """What a target raises is its failure, except running out of memory, which is the machine's, and what
    `passing` names.
    """
    try:
        yield
        if target.device == "cuda":
            # A launch returns before it fails.
            torch.cuda.synchronize()
    except (MemoryError, torch.OutOfMemoryError, KernelError):
        raise
    except (Exception, SystemExit) as error:  # exit code 0 would read as admitted
        if isinstance(error, passing):
            raise
        raise KernelError(f"{target.label}: {type(error).__name__}: {error}") from error


@contextmanager
def one_thread() -> Iterator[None]:
    """For short calls, whose operators cost less than a barrier between threads on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def context_is_lost(target: Target) -> bool:
    """True after a fault on a GPU that no later call of this process survives."""
    if target.device != "cuda":
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def workspace(target: Target, inputs: Inputs, *, poisoned: bool = False) -> dict[str, Any]:
    """The target's own workspace as a keyword of a call; nothing for a callable, which has none."""
    if target.extension is None:
        return {}
    _, heads, head_dim = inputs.q.shape
    found = target.extension.workspace(OP, heads=heads, head_dim=head_dim, device=inputs.q.device)
    if poisoned:
        poison.fill(tuple(found.tensors))
    return {"workspace": found}
