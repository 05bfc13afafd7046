"""One case through the emulator and through the host backend: the first element whose bits differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fixtures.inputs import Inputs
from regression import bits, quantities, schedule
from regression.emulation.emulator import EmulatedError, Emulator, States
from regression.emulation.results import DIFFERS, STUCK, Finding
from regression.quantities import Partials

# The two runs of a case: which operation, and whether its threads run backwards.
ORDERS = {"threads in order": ("debug", False), "threads reversed": ("product", True)}

X86_NAN, GPU_NAN = 0xFFC00000 - (1 << 32), 0x7FFFFFFF


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the host backend gives: the partials of all splits and fp16 out [R, H, D]."""

    partials: Partials
    out: bits.Array


def expected(host: Any, inputs: Inputs) -> Expected:
    """Run a loaded host library."""
    acc, max_sum = host.grouped_e4m3_fp32_partials(*inputs.tensors, **inputs.scales)
    out = host.grouped_e4m3_fp32(*inputs.tensors, **inputs.scales)
    return Expected(partials=Partials(acc=acc.numpy(), max_sum=max_sum.numpy()), out=out.numpy())


def findings(emulator: Emulator, inputs: Inputs, wanted: Expected) -> Iterator[Finding]:
    """What the debug operation, threads in order, and the product, threads reversed, do otherwise."""
    there = wanted.partials.acc.shape[0]
    if there != emulator.splits:
        text = f"{emulator.splits} splits, the host backend has {there}"
        yield Finding(kind=DIFFERS, order="before any thread", text=text)
        return
    for order, (operation, reverse) in ORDERS.items():
        run: Callable[..., States] = getattr(emulator, operation)
        try:
            got = run(inputs, reverse=reverse)
        except EmulatedError as error:
            yield Finding(kind=STUCK, order=order, text=str(error))
            continue
        # The product's workspace holds nothing for splits without a tile.
        splits = emulator.splits if operation == "debug" else _active(emulator, inputs)
        text = _partials(got, wanted, splits) or _output(got, wanted)
        if text:
            yield Finding(kind=DIFFERS, order=order, text=text)


def _active(emulator: Emulator, inputs: Inputs) -> int:
    capacity = inputs.block_table.numel() * inputs.k_cache.shape[1]
    lens = tuple(int(n) for n in inputs.row_lens)
    return schedule.active_splits(emulator.splits, schedule.longest_live(lens, capacity))


def _partials(got: States, wanted: Expected, splits: int) -> str:
    rows = wanted.out.shape[0]
    ours = Partials(
        acc=_as_a_gpu_writes_it(got.acc[:splits, :rows]),
        max_sum=_as_a_gpu_writes_it(got.max_sum[:splits, :rows]),
    )
    theirs = Partials(acc=wanted.partials.acc[:splits], max_sum=wanted.partials.max_sum[:splits])
    found = quantities.diverge(theirs, ours)
    if found is None:
        return ""
    element = "" if found.dimension is None else f", dimension {found.dimension}"
    place = f"{found.quantity} of split {found.split}, row {found.row}, head {found.head}{element}"
    counts = ", ".join(f"{count} of {name}" for name, count in found.counts.items() if count)
    return f"{place}: {_values(found.difference)} ({counts} differ)"


def _as_a_gpu_writes_it(values: Tensor) -> bits.Array:
    """The NaN that arithmetic on an x86 makes as the one that a GPU's makes; no GPU makes the former."""
    words = values.contiguous().view(torch.int32)
    there: bits.Array = torch.where(words == X86_NAN, GPU_NAN, words).view(torch.float32).numpy()
    return there


def _output(got: States, wanted: Expected) -> str:
    difference = bits.first_difference(wanted.out, got.out.numpy())
    if difference is None:
        return ""
    row, head, dimension = difference.index
    count = int(bits.mismatches(wanted.out, got.out.numpy()).sum())
    place = f"output of row {row}, head {head}, dimension {dimension}"
    return f"{place}: {_values(difference)} ({count} differ, all partials agree)"


def _values(found: bits.Difference) -> str:
    return f"host {found.golden:.9g} ({found.golden_bits}), emulated {found.got:.9g} ({found.got_bits})"
