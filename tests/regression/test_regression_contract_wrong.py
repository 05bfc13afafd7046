"""Callables that break one rule each, and the case that says so; the honest one passes all that it can."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fixtures import cases
from fixtures.cases import environment
from fixtures.quantise import decode
from regression import call
from regression.contract import command as contract_command
from regression.contract.results import CaseResult, decide
from regression.target import Target

Attend = Callable[..., Any]
Wrap = Callable[[Attend], Attend]


def callable_of(kernel: Target, wrap: Wrap) -> Target:
    """The kernel as somebody's Python callable: no partials, no workspace, no identity."""
    subject = dataclasses.replace(kernel.subject, code_digest=None)
    honest = kernel.extension.grouped_e4m3_fp32
    return dataclasses.replace(kernel, subject=subject, attend=wrap(honest), partials=None, extension=None)


def honest(attend: Attend) -> Attend:
    return lambda *tensors, out, **scales: attend(*tensors, out=out, **scales)


def after(change: Callable[..., None]) -> Wrap:
    """The output changed afterwards by `change(out, q, k_cache, v_cache, block_table, row_lens)`."""

    def wrap(attend: Attend) -> Attend:
        def wrong(*tensors: Tensor, out: Tensor, **scales: float) -> None:
            attend(*tensors, out=out, **scales)
            change(out, *tensors)

        return wrong

    return wrap


def before(change: Callable[..., tuple[Any, ...]]) -> Wrap:
    """Other tensors than were given: `change(q, k_cache, v_cache, block_table, row_lens)`."""
    return lambda attend: lambda *tensors, **options: attend(*change(*tensors), **options)


def scaled(**wrong: float) -> Wrap:
    """Some scales replaced."""
    return lambda attend: lambda *tensors, out, **scales: attend(*tensors, out=out, **(scales | wrong))


def over_capacity_is_zero(
    out: Tensor, _q: Tensor, k: Tensor, _v: Tensor, table: Tensor, lens: Tensor
) -> None:
    out[lens > table.shape[1] * k.shape[1]] = 0


def quiet_nan(out: Tensor, *_tensors: Tensor) -> None:
    out.view(torch.int16)[out.isnan()] = 0x7E00


def negative_zero(out: Tensor, *tensors: Tensor) -> None:
    out[tensors[4] <= 0] = -0.0


def first_row_moved(out: Tensor, *_tensors: Tensor) -> None:
    out.view(torch.int16)[0, 0, 0] ^= 1


def five_rows(attend: Attend) -> Attend:
    def wrong(q: Tensor, *caches: Tensor, out: Tensor, **scales: float) -> None:
        *caches, lens = caches
        attend(q[:5], *caches, lens[:5], out=out[:5], **scales)

    return wrong


def longest_for_all(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor) -> tuple[Tensor, ...]:
    return q, k, v, table, lens.clamp(min=0).max().expand_as(lens).contiguous()


def ids_of_16_bits(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor) -> tuple[Tensor, ...]:
    return q, k, v, table & 0xFFFF, lens


def shortens_in_place(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor) -> tuple[Tensor, ...]:
    return q, k, v, table, lens.clamp_(min=0)


def converts(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor) -> tuple[Tensor, ...]:
    return q.half().contiguous(), k, v, table.int(), lens.int()


def writes_first(attend: Attend) -> Attend:
    def wrong(*tensors: Tensor, out: Tensor, **scales: float) -> None:
        out.zero_()
        attend(*tensors, out=out, **scales)

    return wrong


def spoils_then_refuses(attend: Attend) -> Attend:
    def wrong(*tensors: Tensor, **options: Any) -> None:
        try:
            attend(*tensors, **options)
        except Exception:
            tensors[1].view(torch.uint8).zero_()
            raise

    return wrong


def returns(value: Callable[..., Any]) -> Wrap:
    def wrap(attend: Attend) -> Attend:
        def wrong(*tensors: Tensor, out: Tensor, **options: Any) -> Any:
            attend(*tensors, out=out, **options)
            return value(out)

        return wrong

    return wrap


def enters_its_own(attend: Attend) -> Attend:
    def wrong(*tensors: Tensor, out: Tensor, **options: Any) -> None:
        environment._leave()
        attend(*tensors, out=out, **options)

    return wrong


def only_bytes(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor) -> tuple[Tensor, ...]:
    if k.dtype != torch.uint8:
        raise TypeError("caches must be uint8")
    return q, k, v, table, lens


def packs(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor) -> tuple[Tensor, ...]:
    return q, k, v, table.contiguous(), lens.contiguous()


def wants_even_strides(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor) -> tuple[Tensor, ...]:
    if any(stride % 8 for stride in k.stride()[:3]):
        raise ValueError("strides must be multiples of 8")
    return q, k, v, table, lens


def one_buffer(attend: Attend) -> Attend:
    """All calls share a scratch, as calls on two streams or threads must not."""
    shared: dict[tuple[int, ...], Tensor] = {}

    def wrong(q: Tensor, *rest: Tensor, out: Tensor, **scales: float) -> None:
        scratch = shared.setdefault(tuple(q.shape), torch.empty_like(q))
        attend(q, *rest, out=scratch, **scales)
        time.sleep(0.05)
        out.copy_(scratch)

    return wrong


def first_lengths_kept(attend: Attend) -> Attend:
    seen: dict[int, Tensor] = {}

    def wrong(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor, **options: Any) -> None:
        attend(q, k, v, table, seen.setdefault(lens.data_ptr(), lens.clone()), **options)

    return wrong


def first_table_kept(attend: Attend) -> Attend:
    seen: dict[int, Tensor] = {}

    def wrong(q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor, **options: Any) -> None:
        attend(q, k, v, seen.setdefault(table.data_ptr(), table.clone()), lens, **options)

    return wrong


def stops_on(kind: type[BaseException]) -> Wrap:
    def wrap(_attend: Attend) -> Attend:
        def wrong(*_tensors: Tensor, **_options: Any) -> None:
            raise kind(0)

        return wrong

    return wrap


def clamped_at(least: float) -> Wrap:
    """Plain attention of one request in fp64 whose exponential is clamped at `least`."""

    def wrong(
        q: Tensor, k: Tensor, v: Tensor, table: Tensor, lens: Tensor, *, out: Tensor, **scales: float
    ) -> None:
        length = int(lens.max())
        keys, values = (decode(c[table[0].long()].reshape(-1, q.shape[2])[:length]) for c in (k, v))
        scores = q.double() @ keys.T * (scales["softmax_scale"] * scales["k_scale"])
        weights = (scores - scores.amax(dim=-1, keepdim=True)).clamp(min=least).exp()
        out.copy_(weights @ values * scales["v_scale"] / weights.sum(dim=-1, keepdim=True))

    return lambda _attend: wrong


WRONG: dict[str, tuple[Wrap, str, str]] = {
    "over capacity gives 0": (after(over_capacity_is_zero), "over-capacity", "nan"),
    "over capacity gives 0, in the table": (after(over_capacity_is_zero), "page-16-over", "layout"),
    "another NaN": (after(quiet_nan), "page-16-over", "layout"),
    "minus zero for an empty row": (after(negative_zero), "empty-last", "layout"),
    "bits by a row's place": (after(first_row_moved), "neighbours-reversed", "control"),
    "five rows, always": (five_rows, "rows-8", "layout"),
    "the longest length for all": (before(longest_for_all), "rows-distinct", "layout"),
    "ids of 16 bits": (before(ids_of_16_bits), "pool-70000", "layout"),
    "no k scale": (scaled(k_scale=1.0), "scales-all", "layout"),
    "no v scale": (scaled(v_scale=1.0), "v-scale-tenth", "exact"),
    "a softmax scale of its own": (scaled(softmax_scale=0.125), "scales-softmax", "layout"),
    "clamped at -40": (clamped_at(-40.0), "clamp-rescale-at", "exact"),
    "clamped at -79.9": (clamped_at(-79.9), "clamp-combine-at", "exact"),
    "clamped nowhere": (clamped_at(-1e9), "clamp-rescale-87", "exact"),
    "lengths changed": (before(shortens_in_place), "graph-states", "states"),
    "lengths changed, in the table": (before(shortens_in_place), "empty-middle", "output-written"),
    "converts instead of refusing": (before(converts), "refused-q-bf16", "refusal"),
    "writes, then refuses": (writes_first, "refused-page-24", "refusal"),
    "spoils its inputs, then refuses": (spoils_then_refuses, "refused-page-24", "output-written"),
    "returns another tensor": (returns(lambda _out: torch.zeros(3)), "permuted", "kernel-failed"),
    "returns a copy": (returns(Tensor.clone), "permuted", "kernel-failed"),
    "returns a number": (returns(lambda _out: 0), "permuted", "kernel-failed"),
    "leaves another environment": (enters_its_own, "environment-upward", "kernel-failed"),
    "refuses float8": (before(only_bytes), "float8", "kernel-failed"),
    "packs what it must refuse": (before(packs), "refused-table-strided", "refusal"),
    "packs lengths that it must refuse": (before(packs), "refused-lens-strided", "refusal"),
    "looks at strides of one": (before(wants_even_strides), "odd-one-page", "kernel-failed"),
    "one buffer for all": (one_buffer, "at-once", "layout"),
    "table kept": (first_table_kept, "states-moved", "layout"),
    "lengths kept": (first_lengths_kept, "states-shrink", "layout"),
    "raises": (stops_on(ArithmeticError), "permuted", "kernel-failed"),
    "raises on a made-up case": (stops_on(ArithmeticError), "k-codes", "kernel-failed"),
    "exits with 0": (stops_on(SystemExit), "permuted", "kernel-failed"),
    "refuses with another error": (stops_on(ArithmeticError), "refused-page-24", "refusal"),
}  # fmt: skip


def run(target: Target, *names: str) -> list[CaseResult]:
    return list(contract_command.check(names, target))


@pytest.mark.parametrize("wrong", WRONG)
def test_a_broken_rule_is_named(wrong: str, kernel: Target) -> None:
    wrap, case, gate = WRONG[wrong]
    name = f"{case}-3x64"
    (result,) = run(callable_of(kernel, wrap), name)
    assert gate in {violation.gate for violation in result.violations}
    assert all(violation.text.startswith(name) for violation in result.violations)
    assert decide([result], scope="it").word == "rejected"


def test_the_honest_callable_passes_and_says_what_it_could_not_show(kernel: Target) -> None:
    names = [name for name in cases.select("core") if name.endswith("-3x64")]
    results = run(callable_of(kernel, honest), *names, "refused-live-id-negative-3x64")
    assert [violation.text for result in results for violation in result.violations] == []
    judgement = decide(results, scope="it")
    assert judgement.word == "admitted"
    assert "not covered: partial-bound (" in judgement.reasons[0].text
    assert "a refusal of this kernel alone (1 cases)" in judgement.reasons[0].text
    assert "another CPU implementation (1 cases)" in judgement.reasons[0].text


def test_a_workspace_that_must_hold_something_is_seen(kernel: Target) -> None:
    def attend(*tensors: Tensor, out: Tensor, workspace: Any = None, **scales: Any) -> None:
        left = 0.0 if workspace is None else float(workspace.acc[0, 7, 0, 0])
        kernel.attend(*tensors, out=out, workspace=workspace, **scales)
        out.add_(left)

    wrong = dataclasses.replace(kernel, attend=attend)
    assert [bool(r.violations) for r in run(wrong, "dirt-00-3x64", "dirt-ff-3x64")] == [False, True]


def test_a_write_beside_the_output_is_seen(kernel: Target) -> None:
    def wrong(*tensors: Tensor, out: Tensor, **options: Any) -> None:
        kernel.attend(*tensors, out=out, **options)
        out.as_strided((1,), (1,), out.storage_offset() + out.numel()).zero_()

    (result,) = run(dataclasses.replace(kernel, attend=wrong), "permuted-3x64")
    assert {violation.gate for violation in result.violations} == {"output-written"}


def test_a_lost_context_ends_the_run_with_its_case(kernel: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(call, "context_is_lost", lambda _target: counted.append(0) or len(counted) == 2)
    results = run(kernel, "permuted-3x64", "nan-q-3x64", "page-16-3x64")
    assert [result.name for result in results] == ["permuted-3x64", "nan-q-3x64", "nan-q-3x64"]
    assert results[-1].violations[0].gate == "kernel-failed"
    assert decide(results, scope="it").word == "rejected"


def test_want_of_memory_leaves_out_large_rows_alone(kernel: Target) -> None:
    def wrong(*_tensors: Tensor, **_options: Any) -> None:
        raise MemoryError

    small = dataclasses.replace(kernel, attend=wrong)
    (result,) = run(small, "far-32-3x64")
    assert (result.ran, result.uncovered) == (False, ("too little memory",))
    with pytest.raises(MemoryError):
        run(small, "permuted-3x64")


def test_nothing_run_is_unknown(kernel: Target) -> None:
    results = run(callable_of(kernel, honest), "refused-live-id-negative-3x64")
    assert decide(results, scope="it").word == "unknown"
