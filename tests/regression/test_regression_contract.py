"""The contract's cases on the host backend of sm_70 and sm_90, and each gate failing once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fixtures import cases
from regression import contract
from regression.contract import command as contract_command
from regression.target import Target, from_callable

# Seconds each, and they show what the shorter or smaller ones show.
HEAVY = ("biased-v-256k-6x256", "midpoint-160k-6x256", "midpoint-256k-6x256")
NAMES = tuple(name for name in cases.select("all") if name not in HEAVY)


def test_the_kernel_keeps_the_contract(kernel: Target) -> None:
    names = NAMES if kernel.arch == "sm_70" else cases.select("core")
    results = list(contract_command.check(names, kernel))
    assert [violation.text for result in results for violation in result.violations] == []
    assert [result.name for result in results if result.uncovered] == []


@pytest.mark.parametrize(
    "prefix",
    [
        "midpoint-128k", "midpoint-256k", "small-residual", "biased-v", "v-codes", "nan-", "graph", "q-",
        "pad", "clamp-rescale-at", "clamp-combine-above", "v-scale", "k-scale", "scales-", "neighbours",
        "rows-8", "page-16-over", "far-32", "pool-70000", "at-once", "dirt-ff", "states-", "refused-",
    ],
)  # fmt: skip
def test_no_property_has_lost_its_cases(prefix: str) -> None:
    found = {name.rsplit("-", 1)[1] for name in cases.select("all") if name.startswith(prefix)}
    assert found == {"3x64", "6x256"}


def test_core_is_a_part_with_every_kind() -> None:
    core = set(cases.select("core"))
    assert core < set(cases.select("all"))
    for kind in (
        "midpoint",
        "biased-v",
        "nan-k",
        "clamp-combine",
        "refused",
        "states",
        "page-16-over",
        "dirt",
    ):
        assert any(name.startswith(kind) for name in core)


def altered(kernel: Target, change: Callable[..., None]) -> Target:
    """The kernel with its output changed after each call; `change` gets the output and the lengths."""

    def attend(*tensors: Tensor, out: Tensor, workspace: object, **scales: Any) -> None:
        kernel.attend(*tensors, out=out, workspace=workspace, **scales)
        change(out, tensors[4])

    return dataclasses.replace(kernel, attend=attend)


def flip_first(out: Tensor, _lens: Tensor) -> None:
    out.view(torch.int16)[0, 0, 0] ^= 1


def lose_nan(out: Tensor, _lens: Tensor) -> None:
    out.nan_to_num_(nan=0.5)


def other_nan(out: Tensor, _lens: Tensor) -> None:
    out.view(torch.int16)[out.isnan()] = 0x7E00


def scale(out: Tensor, _lens: Tensor) -> None:
    out.mul_(1.01)


def dirty_empty_rows(out: Tensor, lens: Tensor) -> None:
    out[lens <= 0] = -0.0


@pytest.mark.parametrize(
    ("name", "change", "gate"),
    [
        ("v-codes-00-3x64", flip_first, "exact"),
        ("nan-v-late-3x64", lose_nan, "nan"),
        ("nan-v-late-3x64", other_nan, "nan"),
        ("q-offset-1-3x64", scale, "budget"),
        ("neighbours-reversed-3x64", flip_first, "control"),
        ("graph-states-3x64", dirty_empty_rows, "states"),
    ],
)
def test_a_wrong_output_breaks_its_gate(
    name: str, change: Callable[..., None], gate: str, kernel: Target
) -> None:
    broken = contract.check(cases.build(name), altered(kernel, change))
    assert gate in {violation.gate for violation in broken}
    assert any(name in violation.text for violation in broken)


def test_a_loader_that_rounds_addresses_down_breaks_the_control(kernel: Target) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, *rest: Tensor, **options: Any) -> None:
        """Reads K's tokens from the 16-byte boundary below."""
        step = k.stride(1) // 16 * 16
        lower = k.as_strided(k.shape, (k.stride(0), step, k.stride(2), 1))
        kernel.attend(q, lower, v, *rest, **options)

    broken = contract.check(cases.build("one-page-pad-8-3x64"), dataclasses.replace(kernel, attend=attend))
    assert "control" in {violation.gate for violation in broken}


def test_rough_partials_break_their_bound(kernel: Target) -> None:
    assert kernel.partials is not None
    given = kernel.partials

    def rounded(*tensors: Tensor, **scales: float) -> tuple[Tensor, Tensor]:
        acc, max_sum = given(*tensors, **scales)
        return acc.half().float(), max_sum

    # Without its extension the target is a pair of callables.
    rough = dataclasses.replace(kernel, partials=rounded, extension=None)
    broken = contract.check(cases.build("small-residual-one-3x64"), rough)
    assert {violation.gate for violation in broken} == {"partial-bound"}


def test_a_stale_workspace_breaks_the_states(kernel: Target) -> None:
    """A kernel whose empty rows let the workspace's last contents through."""
    last: dict[str, Tensor] = {}

    def attend(*tensors: Tensor, out: Tensor, workspace: object, **scales: Any) -> None:
        kernel.attend(*tensors, out=out, workspace=workspace, **scales)
        empty = tensors[4] <= 0
        if "out" in last:
            out[empty] = last["out"][empty]
        last["out"] = out.clone()

    broken = contract.check(cases.build("graph-states-3x64"), dataclasses.replace(kernel, attend=attend))
    assert "states" in {violation.gate for violation in broken}


def test_a_kernel_that_writes_nothing_is_seen(callables: str) -> None:
    idle = from_callable(f"{callables}:idle", backend="host", arch="sm_70")
    broken = contract.check(cases.build("k-codes-3x64"), idle)
    assert broken[0].gate == "output-written"


def test_the_truth_is_not_taken_from_inputs_that_the_kernel_changed(kernel: Target) -> None:
    """A kernel that halves V in place would be right about the halved V."""

    def attend(q: Tensor, k: Tensor, v: Tensor, *rest: Tensor, out: Tensor, **options: Any) -> None:
        v.fill_(0x38)
        kernel.attend(q, k, v, *rest, out=out, **options)

    broken = contract.check(cases.build("k-codes-3x64"), dataclasses.replace(kernel, attend=attend))
    assert {violation.gate for violation in broken} == {"output-written", "budget"}
    assert "v_cache" in broken[0].text
