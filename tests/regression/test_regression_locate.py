"""`--locate` names the place where bits first differ, with and without values to compare."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from fixtures.golden import Golden
from regression import locate, locate_report, references
from regression.target import OP, TargetError, from_path

VALUED, WIDE = "3x64-8k-00", "6x256-8k-01"


def test_nothing_to_locate_is_admitted_without_any_reference(
    command, artifact: Path, goldens: dict[str, Golden], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert goldens[VALUED].acc is not None
    monkeypatch.setattr(references, "choose", None)
    done = command("replay", "--artifact", artifact, "--locate", VALUED)
    assert done.code == 0
    assert "every digest and every output bit is the golden's" in done.verdict


@pytest.mark.parametrize("quantity", ["max", "sum", "numerator"])
def test_stored_values_name_head_and_quantity(
    command, artifact: Path, goldens: dict[str, Golden], quantity: str
) -> None:
    goldens[VALUED] = with_changed_value(goldens[VALUED], quantity)
    done = command("replay", "--artifact", artifact, "--locate", VALUED)
    assert done.code == 1
    assert f"located: {quantity} of split 0 (tokens 0…" in done.verdict
    assert "row 1, head 2" in done.verdict
    assert ("dimension 5" in done.verdict) == (quantity == "numerator")
    assert done.json["outcome"] == "fail"
    assert done.json["places"] == [[0, 1]]
    assert (done.json["divergence"]["quantity"], done.json["divergence"]["head"]) == (quantity, 2)


def test_an_output_that_differs_alone_is_the_combine(
    command, artifact: Path, goldens: dict[str, Golden]
) -> None:
    changed = goldens[VALUED].out.clone()
    changed.view(torch.int16)[1, 2, 9] ^= 1
    goldens[VALUED] = dataclasses.replace(goldens[VALUED], out=changed)
    done = command("replay", "--artifact", artifact, "--locate", VALUED)
    assert done.code == 1
    assert "located: combine" in done.verdict
    assert any("[1, 2, 9]" in line for line in done.lines)


def test_digests_alone_name_split_and_row(
    command, artifact: Path, goldens: dict[str, Golden], monkeypatch: pytest.MonkeyPatch
) -> None:
    goldens[WIDE] = without_values(goldens[WIDE])
    monkeypatch.setattr(references, "_sources", lambda _target: iter(()))
    done = command("replay", "--artifact", artifact, "--locate", WIDE)
    assert done.code == 1
    assert "located: split 0 (tokens 0…" in done.verdict
    assert "row 1; no reference" in done.verdict


def test_a_reference_given_as_a_path_is_used_and_its_trust_is_said(
    command, artifact: Path, goldens: dict[str, Golden]
) -> None:
    goldens[WIDE] = without_values(goldens[WIDE])
    done = command("replay", "--artifact", artifact, "--locate", WIDE, "--against", artifact)
    assert done.code == 1
    assert any("does NOT give the golden's digests" in line for line in done.lines)


def test_a_callable_with_wrong_partials_is_located_against_the_kernel(
    command, callables: str, goldens: dict[str, Golden], artifact: Path
) -> None:
    del goldens[WIDE]
    chosen = ("--backend", "host", "--callable", f"{callables}:with_partials")
    done = command("replay", *chosen, "--locate", WIDE, "--against", artifact)
    assert done.code == 1
    assert "located: numerator of split 0" in done.verdict
    assert "row 1, head 2, dimension 3" in done.verdict
    assert done.json["token"] == 0


def test_with_neither_golden_nor_reference_it_is_unknown(
    command, artifact: Path, goldens: dict[str, Golden], monkeypatch: pytest.MonkeyPatch
) -> None:
    del goldens[WIDE]
    monkeypatch.setattr(references, "_sources", lambda _target: iter(()))
    done = command("replay", "--artifact", artifact, "--locate", WIDE)
    assert (done.code, "--against" in done.verdict) == (4, True)


@pytest.mark.usefixtures("goldens")
def test_a_target_without_debug_operation_is_unknown(command, callables: str) -> None:
    done = command("replay", "--backend", "host", "--callable", f"{callables}:honest", "--locate", VALUED)
    assert (done.code, "no debug operation" in done.verdict) == (4, True)


def test_locating_several_groups_is_a_usage_error(command, artifact: Path) -> None:
    assert command("replay", "--artifact", artifact, "--locate", "core").code == 2


def test_sources_that_cannot_be_had_are_left_out(monkeypatch: pytest.MonkeyPatch, artifact: Path) -> None:
    def none(*_args: object, **_options: object) -> None:
        raise TargetError("not here")

    for maker in ("revision_build", "base_build", "built"):
        monkeypatch.setattr(references, maker, none)
    assert list(references._sources(references.from_path(artifact))) == []


def with_changed_value(golden: Golden, quantity: str) -> Golden:
    assert golden.acc is not None
    assert golden.max_sum is not None
    acc, max_sum = golden.acc.clone(), golden.max_sum.clone()
    changed = {"max": max_sum[..., 0], "sum": max_sum[..., 1], "numerator": acc[..., 5]}[quantity]
    changed[0, 1, 2] = torch.nextafter(changed[0, 1, 2], torch.tensor(torch.inf))
    digests = golden.digests.copy()
    digests[0, 1] ^= np.uint64(1)
    return dataclasses.replace(golden, acc=acc, max_sum=max_sum, digests=digests)


def without_values(golden: Golden) -> Golden:
    digests = golden.digests.copy()
    digests[0, 1] ^= np.uint64(1)
    return dataclasses.replace(golden, acc=None, max_sum=None, digests=digests)


def test_the_token_where_a_difference_begins_is_found(artifact: Path) -> None:
    """A kernel whose row 1 goes wrong once its prefix holds more than 29 tokens."""
    kernel = from_path(artifact)
    name = f"{OP}_partials"

    def late(*arguments: object) -> None:
        kernel.extension.functions[name](*arguments)
        lens, acc = arguments[4], arguments[5]
        if int(lens[1]) > 29:
            acc[0, 1, 2, 3] += 1

    extension = dataclasses.replace(kernel.extension, functions={**kernel.extension.functions, name: late})
    faulty = dataclasses.replace(kernel, extension=extension)
    finding = locate.find(WIDE, faulty, against=artifact)
    assert finding.token == 29
    text = locate_report.text(finding)
    assert "from token 29 on (tile 0)" in text
