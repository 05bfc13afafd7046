"""Drawn calls: the kernel takes them all; kernels that err where no case looks are found, and made small."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from evidence import store
from fixtures.cases import Spec, drawn
from regression import cli
from regression.contract.gates import Violation
from regression.contract.rows import Rows
from regression.fuzz import explore, rules
from regression.fuzz.explore import Exploration
from regression.target import Target

Command = Callable[..., Any]


def exploration(target: Target, **fields: Any) -> Exploration:
    rows = Rows.of(target)
    return Exploration(check=lambda spec: rules.check(spec, rows), **fields)


def test_the_kernel_takes_the_corpus_and_drawn_calls(kernel: Target) -> None:
    run = exploration(kernel)
    explore.repeat(run, drawn.corpus())
    explore.explore(run, seed=7, examples=40)
    assert [failure.violations for failure in run.failures] == []
    assert run.ran >= len(drawn.corpus()) + 40
    assert run.refused > 10


def altered(kernel: Target, change: Callable[..., None]) -> Target:
    """The kernel with its output changed by `change(out, q, k_cache, v_cache, block_table, row_lens)`."""

    def attend(*tensors: Tensor, out: Tensor, **options: Any) -> None:
        kernel.attend(*tensors, out=out, **options)
        change(out, *tensors)

    return dataclasses.replace(kernel, attend=attend)


def flip(out: Tensor) -> None:
    out.view(torch.int16)[0, 0, 0] ^= 1


def by_place(out: Tensor, q: Tensor, *rest: Tensor) -> None:
    """A bit of the first row that hardly counts depends on the last row's query."""
    if float(q[-1, 0, 0]) < 0 and int(rest[3].min()) > 64:
        out.view(torch.int16)[0, 0, int(out[0, 0].abs().argmin())] ^= 1


def now_and_then(counted: list[int]) -> Callable[..., None]:
    def change(out: Tensor, *_tensors: Tensor) -> None:
        counted.append(0)
        if len(counted) % 4 == 0:
            flip(out)

    return change


def first_failure(target: Target, *, examples: int = 400) -> tuple[Spec, tuple[Violation, ...]]:
    run = exploration(target, until_s=time.monotonic() + 60)
    explore.explore(run, seed=5, examples=examples)
    found = run.smallest()
    assert found is not None
    return found.spec, found.violations


def test_a_failing_call_is_made_small(kernel: Target) -> None:
    def tall(out: Tensor, q: Tensor, *_rest: Tensor) -> None:
        if len(q) >= 6:
            flip(out)

    # The control errs alike, so only a row that is told apart shows it.
    spec, violations = first_failure(
        altered(kernel, lambda out, q, *rest: tall(out, q) if rest[2].numel() > 2 else None)
    )
    assert {violation.gate for violation in violations} == {"layout"}
    assert (spec.rows, spec.refusal) == (6, None)
    assert not spec.nans and not spec.special


@pytest.mark.parametrize(
    ("change", "gates"),
    [(by_place, {"neighbours"}), (now_and_then([]), {"layout", "repeat", "neighbours"})],
    ids=["by place", "now and then"],
)
def test_an_invariance_that_breaks_is_named(
    kernel: Target, change: Callable[..., None], gates: set[str]
) -> None:
    _spec, violations = first_failure(altered(kernel, change))
    assert {violation.gate for violation in violations} <= gates


def test_partials_that_depend_on_the_layout_are_found(kernel: Target) -> None:
    given = kernel.partials
    assert given is not None

    def partials(q: Tensor, k: Tensor, *rest: Any, **scales: float) -> tuple[Tensor, Tensor]:
        acc, max_sum = given(q, k, *rest, **scales)
        if k.stride(1) % 16:
            acc.view(torch.int32)[0, 0, 0, 0] ^= 1
        return acc, max_sum

    wrong = dataclasses.replace(kernel, partials=partials, extension=None)
    spec, violations = first_failure(wrong)
    assert {violation.gate for violation in violations} == {"partials"}
    assert spec.token_pad % 16 == 8


def test_a_wrong_call_that_is_taken_is_found(kernel: Target) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, *ints: Tensor, out: Tensor, **options: Any) -> None:
        table, lens = (tensor.int().contiguous() for tensor in ints)
        kernel.attend(q.half().contiguous(), k, v, table, lens, out=out, **options)

    subject = dataclasses.replace(kernel.subject, code_digest=None)
    kind = dataclasses.replace(kernel, attend=attend, extension=None, subject=subject, partials=None)
    spec, violations = first_failure(kind)
    assert {violation.gate for violation in violations} == {"refusal"}
    words = spec.name.removeprefix("drawn, ").split("-")
    assert words[0] in ("q", "table", "lens") and words[1] not in ("rank", "dim", "elsewhere", "base")


def test_without_hypothesis_the_seed_alone_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "has_hypothesis", lambda: False)
    seen: list[list[dict[str, Any]]] = []
    for _ in range(2):
        calls: list[dict[str, Any]] = []
        run = Exploration(check=lambda spec, calls=calls: (calls.append(drawn.as_json(spec)), ())[1])
        explore.explore(run, seed=5, examples=30)
        seen.append(calls)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 30
    assert any("wrong" in call for call in seen[0])


def test_time_ends_a_run(kernel: Target) -> None:
    run = exploration(kernel, until_s=time.monotonic() - 1)
    explore.explore(run, seed=1, examples=50)
    explore.repeat(run, drawn.corpus())
    assert run.ran == 0


def test_a_failing_call_is_kept_and_can_be_repeated(command: Command, callables: str, tmp_path: Path) -> None:
    options = ("--callable", f"{callables}:rough", "--arch", "sm_70", "--backend", "host")
    done = command("fuzz", *options, "--examples", "5", "--seed", "1")
    assert done.code == 1
    assert done.verdict.startswith("verdict: rejected (fuzz-broken: layout: drawn: ")
    (again,) = (line for line in done.lines if line.startswith("again: python -m regression fuzz --example "))
    path = Path(again.split()[6])
    assert path.is_relative_to(tmp_path)
    assert json.loads(path.read_text()) == [done.json["results"]["failure"]]
    repeated = command(*again.removeprefix("again: python -m regression ").split())
    assert (repeated.code, repeated.json["results"]["ran"]) == (1, 1)
    assert [record.kind for record in store.load().records] == ["fuzz", "fuzz"]


def test_a_clean_run_leaves_a_record(command: Command, artifact: Path) -> None:
    done = command("fuzz", "--artifact", artifact, "--examples", "3", "--seed", "1")
    assert done.code in (0, 3)  # undecided from a dirty tree
    assert "refused as they must be" in done.verdict
    (kept,) = store.load().records
    assert (kept.kind, kept.outcome, kept.selection["seed"]) == ("fuzz", "pass", 1)
    assert kept.results["ran"] == len(drawn.corpus()) + 3


@pytest.mark.parametrize("amount", ["--minutes=nan", "--minutes=-1", "--minutes=inf", "--examples=0"])
def test_an_amount_that_draws_nothing_or_never_ends_is_refused(amount: str) -> None:
    assert cli.main(["fuzz", amount]) == 2


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[1]",
        '[{"page": 16}]',
        '[{"heads": 3, "dim": 64, "lens": [1, 1], "wrong": "?"}]',
        '[{"heads": 3, "dim": 64, "lens": "ab"}]',
        '[{"heads": 3, "dim": 64, "lens": []}]',
        '[{"heads": 3, "dim": 64, "lens": [1, 1], "scales": [1]}]',
        '[{"heads": 3, "dim": 64, "lens": [1, 1], "at_once": 0}]',
    ],
)
def test_a_file_that_holds_no_calls_is_a_matter_of_usage(
    command: Command, artifact: Path, tmp_path: Path, content: str
) -> None:
    (tmp_path / "calls.json").write_text(content)
    done = command("fuzz", "--artifact", artifact, "--example", tmp_path / "calls.json")
    assert done.code == 2
