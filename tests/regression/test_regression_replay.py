"""Replay's gates, each passing and failing, through the command line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from artifacts import Side
from evidence import store
from fixtures import integrity
from fixtures.errors import FixtureError
from fixtures.golden import Golden
from fixtures.inputs import materialise
from regression import call, poison, target
from regression.selection import select_one
from regression.target import OP, from_path

SMALL = ("3x64-8k-00", "6x256-8k-01")
CHOSEN = ("--groups", ",".join(SMALL))


@pytest.mark.usefixtures("goldens")
def test_the_real_kernel_is_admitted_with_a_record(command, artifact: Path, tmp_path: Path) -> None:
    done = command("replay", "--artifact", artifact, *CHOSEN)
    assert done.code == 0
    assert done.verdict.startswith("verdict: admitted (same-bits: ")
    assert all(g["bitwise"] and g["partials"] == "ok" and g["within_budget"] for g in done.groups.values())
    (record,) = store.load(tmp_path / "home" / "records").records
    assert (record.kind, record.outcome, record.inputs) == ("replay", "pass", integrity.manifest_hash())
    assert record.artifact.code_digest is not None
    assert len(record.results["groups"]) == 2


@pytest.mark.usefixtures("goldens")
def test_a_callable_with_the_same_bits_is_admitted(command, callables: str) -> None:
    done = command("replay", "--backend", "host", "--callable", f"{callables}:honest", *CHOSEN)
    assert (done.code, done.verdict.count("partials unchecked in 2")) == (0, 1)
    assert not done.json["selection"]["partials"]


def test_a_flipped_golden_bit_is_rejected_and_shown(
    command, artifact: Path, goldens: dict[str, Golden]
) -> None:
    golden = goldens[SMALL[1]]
    changed = golden.out.clone()
    changed.view(torch.int16)[1, 3, 7] ^= 1
    goldens[SMALL[1]] = dataclasses.replace(golden, out=changed)
    done = command("replay", "--artifact", artifact, *CHOSEN)
    assert done.code == 1
    assert done.verdict.startswith("verdict: rejected (bits-differ: ")
    result = done.groups[SMALL[1]]
    assert (result["mismatching"], result["first"]["index"]) == (1, [1, 3, 7])
    assert result["first"]["golden"] == float(changed[1, 3, 7])
    assert result["first"]["got"] == float(golden.out[1, 3, 7])
    assert result["first"]["oracle"] == pytest.approx(result["first"]["got"], rel=1e-3)
    assert result["trend"] in ("improved", "worsened")
    assert done.groups[SMALL[0]]["bitwise"]
    shown = [line for line in done.lines if line.startswith(f"{SMALL[1]}: 1 of ")]
    assert len(shown) == 1
    assert "[1, 3, 7]: golden" in shown[0]


def test_a_flipped_digest_is_rejected(command, artifact: Path, goldens: dict[str, Golden]) -> None:
    golden = goldens[SMALL[0]]
    digests = golden.digests.copy()
    digests[0, 1] ^= np.uint64(1)
    goldens[SMALL[0]] = dataclasses.replace(golden, digests=digests)
    done = command("replay", "--artifact", artifact, *CHOSEN)
    assert done.code == 1
    assert "partials-differ" in done.verdict
    difference = done.groups[SMALL[0]]["partial_difference"]
    assert (difference["first_split"], difference["first_row"], difference["differing"]) == (0, 1, 1)


def test_without_partials_a_flipped_digest_stays_unseen_and_that_is_said(
    command, artifact: Path, goldens: dict[str, Golden]
) -> None:
    golden = goldens[SMALL[0]]
    goldens[SMALL[0]] = dataclasses.replace(golden, digests=golden.digests + np.uint64(1))
    done = command("replay", "--artifact", artifact, "--no-partials", *CHOSEN)
    assert done.code == 0
    assert "partials unchecked in 2" in done.verdict
    assert done.json["selection"] == {"groups": ",".join(SMALL), "partials": False}


def test_a_missing_golden_is_unknown(command, artifact: Path, goldens: dict[str, Golden]) -> None:
    del goldens[SMALL[0]]
    done = command("replay", "--artifact", artifact, *CHOSEN)
    assert done.code == 4
    assert done.verdict.startswith("verdict: unknown (no-golden: ")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("flipped", "bits-differ"),
        ("with_partials", "partials-differ"),
        ("idle", "unwritten-output"),
        ("lazy", "unwritten-output"),
        ("elsewhere", "kernel-failed"),
        ("twofold", "kernel-failed"),
        ("not_a_number", "not-finite"),
        ("too_far", "stray-write"),
        ("greedy", "inputs-modified"),
        ("rough", "over-budget"),
        ("broken", "kernel-failed"),
        ("leaving", "kernel-failed"),
    ],
)
@pytest.mark.usefixtures("goldens")
def test_a_misbehaving_kernel_is_rejected(command, callables: str, name: str, code: str) -> None:
    done = command("replay", "--backend", "host", "--callable", f"{callables}:{name}", *CHOSEN)
    assert done.code == 1
    assert done.json["outcome"] == "fail"
    assert code in [reason["code"] for reason in done.json["reasons"]]


@pytest.mark.usefixtures("goldens")
def test_all_changed_inputs_are_named(command, callables: str) -> None:
    done = command("replay", "--backend", "host", "--callable", f"{callables}:greedy", *CHOSEN)
    for group in done.groups.values():
        assert (
            {"block_table", "k_cache"}
            <= set(group["modified_inputs"])
            <= {"block_table", "k_cache", "v_cache"}
        )


@pytest.mark.usefixtures("goldens")
@pytest.mark.parametrize("group", ["3x64-8k-00", "3x64-8k-25"])
def test_the_truth_is_older_than_what_a_kernel_wrote(command, callables: str, group: str) -> None:
    """A kernel that changes V, and is right about the changed V; groups outside of core are watched too."""
    options = ("--callable", f"{callables}:forger", "--groups", group)
    done = command("replay", "--backend", "host", "--arch", "sm_70", *options)
    codes = [reason["code"] for reason in done.json["reasons"]]
    assert {"inputs-modified", "over-budget"} <= set(codes)
    assert "v_cache" in done.groups[group]["modified_inputs"]
    assert done.groups[group]["accuracy"]["relative_l2"] > 0.1


@pytest.mark.usefixtures("goldens")
def test_a_library_of_another_architecture_is_not_compared(command, artifact: Path) -> None:
    done = command("replay", "--artifact", artifact, "--arch", "sm_90", *CHOSEN)
    assert (done.code, done.json["outcome"], "results" in done.json) == (4, "unknown", False)
    assert "no-target" in done.verdict


def test_a_file_that_is_no_kernel_is_unknown(command, tmp_path: Path) -> None:
    path = tmp_path / "not.so"
    path.write_bytes(b"\x7fELF not")
    done = command("replay", "--library", path, *CHOSEN)
    assert done.code == 4
    assert done.verdict.startswith("verdict: unknown (")


def test_a_changed_library_is_refused(command, artifact: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in artifact.iterdir():
        data = bytearray(path.read_bytes())
        if path.suffix == ".so":
            data[len(data) // 2] ^= 1
        (copy / path.name).write_bytes(bytes(data))
    done = command("replay", "--artifact", copy, *CHOSEN)
    assert done.code == 4
    assert done.verdict.startswith("verdict: unknown (artifact-refused: ")


def test_a_damaged_fixture_is_the_machinerys_failure(
    command, artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(_names: object = None) -> int:
        raise FixtureError("banks/reference.safetensors: tensor layer2.head0.k differs")

    monkeypatch.setattr(integrity, "verify", damaged)
    done = command("replay", "--artifact", artifact, *CHOSEN)
    assert done.code == 5
    assert "layer2.head0.k" in done.verdict
    assert done.verdict.startswith("verdict: unknown (fixture-damaged: ")


@pytest.mark.parametrize("selection", ["", "6x256-8k-99", "core,nothing"])
def test_a_selection_of_nothing_is_a_usage_error(command, artifact: Path, selection: str) -> None:
    done = command("replay", "--artifact", artifact, "--groups", selection)
    assert (done.code, done.json["outcome"], "results" in done.json) == (2, "unknown", False)
    assert done.verdict.startswith("verdict: unknown (usage: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "--artifact", "a", "--library", "b"),
        ("replay", "--locate", "x", "--accept", "y"),
        ("replay", "--arch", "sm_61"),
        (),
    ],
)
def test_wrong_options_exit_with_2(command, arguments: tuple[str, ...]) -> None:
    assert command(*arguments).code == 2


def test_against_without_locate_is_a_usage_error(command) -> None:
    assert command("replay", "--against", "x").code == 2


def test_an_unforeseen_error_is_never_a_rejection(
    command, artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_luck(*_args: object) -> int:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(integrity, "verify", out_of_luck)
    done = command("replay", "--artifact", artifact, *CHOSEN)
    assert done.code == 5
    assert done.verdict == "verdict: unknown (machinery: ZeroDivisionError: unforeseen)"


def test_the_results_of_an_earlier_run_are_not_left_standing(command, artifact: Path, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"outcome": "pass"}')
    done = command("replay", "--artifact", artifact, "--groups", "nothing")
    assert done.json == {"outcome": "unknown", "reasons": done.json["reasons"]}
    assert done.json["reasons"][0]["code"] == "usage"


@pytest.mark.usefixtures("goldens")
def test_a_failing_kernel_is_named_with_its_group(command, callables: str) -> None:
    done = command("replay", "--backend", "host", "--callable", f"{callables}:broken", *CHOSEN)
    assert "kernel-failed: group 6x256-8k-01: " in done.verdict
    assert "no kernel image" in done.verdict


def test_partials_left_unwritten_are_seen(artifact: Path) -> None:
    kernel = from_path(artifact)
    name = f"{OP}_partials"

    def forgetful(*arguments: object) -> None:
        kernel.extension.functions[name](*arguments)
        arguments[5].view(torch.int32)[-1, 0, 0, 0] = poison.STATE_PATTERN

    extension = dataclasses.replace(
        kernel.extension, functions={**kernel.extension.functions, name: forgetful}
    )
    inputs = materialise(select_one(SMALL[0]))
    with pytest.raises(call.KernelError, match="1 elements of the partials were never written"):
        call.partials(dataclasses.replace(kernel, extension=extension), inputs)


@pytest.mark.parametrize("bits", ["same", "other"])
def test_a_dirty_tree_is_measured_but_never_admitted(
    command, artifact: Path, goldens: dict[str, Golden], monkeypatch: pytest.MonkeyPatch, bits: str
) -> None:
    clean = from_path(artifact)
    dirty = Side(origin="worktree", dirty=("kernels/src/host/run.cc", "noxfile.py"))
    monkeypatch.setattr(target, "built", lambda *_: dataclasses.replace(clean, side=dirty))
    if bits == "other":
        changed = goldens[SMALL[0]].digests + np.uint64(1)
        goldens[SMALL[0]] = dataclasses.replace(goldens[SMALL[0]], digests=changed)
    done = command("replay", "--backend", "host", *CHOSEN)
    if bits == "same":
        assert (done.code, done.json["outcome"]) == (3, "pass")
        assert done.verdict.startswith("verdict: undecided (dirty-tree: ")
        assert "kernels/src/host/run.cc and 1 more differ" in done.verdict
    else:
        assert (done.code, done.json["outcome"]) == (1, "fail")
