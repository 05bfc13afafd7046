"""Goldens are renewed all together, with a table and a reason, or not at all."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from evidence import store
from fixtures import golden, oracle
from fixtures.golden import Golden
from fixtures.integrity import Manifest
from regression import accept, command, selection, stored

SMALL = ("3x64-8k-00", "6x256-8k-01")
CHANGELOG = "# Changelog\n\n## Unreleased\n\n- Something.\n\n## 0.1.0\n\n- First.\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for goldens and a changelog of the test's own; all groups are two small ones."""
    folder = tmp_path / "fixtures"
    folder.mkdir()
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(CHANGELOG)
    monkeypatch.setattr(accept, "CHANGELOG", changelog)
    monkeypatch.setattr(golden, "write", functools.partial(golden.write, folder=folder))
    monkeypatch.setattr(command, "select", lambda _words: selection.select(",".join(SMALL)))
    return folder


def stored_goldens(monkeypatch: pytest.MonkeyPatch, goldens: Mapping[str, Golden]) -> None:
    monkeypatch.setattr(stored, "reader", lambda _arch: goldens.get)


def test_first_goldens_are_what_the_kernel_gave(
    command, artifact: Path, fresh: Mapping[str, Golden], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_goldens(monkeypatch, {})
    done = command("replay", "--artifact", artifact, "--accept", "revision 4 begins")
    assert done.code == 0
    assert "accepted: first goldens of sm_70, 2 groups" in done.verdict
    for name in SMALL:
        written = golden.read("sm_70", name, folder=place)
        assert torch.equal(written.out.view(torch.int16), fresh[name].out.view(torch.int16))
        assert (written.digests == fresh[name].digests).all()
    text = (place.parent / "CHANGELOG.md").read_text()
    assert "### sm_70, bits changed: accepted because revision 4 begins\n" in text
    assert text.index("- Something.") < text.index("First goldens.") < text.index("## 0.1.0")
    note = Manifest.open(place).files["golden/sm_70.safetensors"]["note"]["history"][-1]
    assert note["reason"] == "revision 4 begins"
    assert len(note["provenance"]["code_digest"]) == 64


@pytest.mark.usefixtures("place")
def test_an_acceptance_leaves_a_record(
    command, artifact: Path, fresh: Mapping[str, Golden], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_goldens(monkeypatch, {SMALL[0]: worse(fresh[SMALL[0]]), SMALL[1]: fresh[SMALL[1]]})
    command("replay", "--artifact", artifact, "--accept", "nearer to the truth")
    (kept,) = store.load().records
    assert (kept.kind, kept.outcome, kept.reasons[0].code) == ("accept", "pass", "accepted")
    assert kept.results["accepted"]["reason"] == "nearer to the truth"
    assert [group["trend"] for group in kept.results["groups"]] == ["same", "improved"]


def test_changed_bits_are_counted_in_the_changelog(
    command, artifact: Path, fresh: Mapping[str, Golden], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_goldens(monkeypatch, {SMALL[0]: worse(fresh[SMALL[0]]), SMALL[1]: fresh[SMALL[1]]})
    done = command("replay", "--artifact", artifact, "--accept", "nearer  to\nthe truth")
    assert done.code == 0
    assert "renewed goldens" in done.verdict
    text = (place.parent / "CHANGELOG.md").read_text()
    assert "accepted because nearer to the truth\n" in text
    assert "1 improved, 0 worsened, 0 tied, 1 same" in text
    assert "| 1/0/0 |" in text


def test_unchanged_bits_leave_goldens_and_changelog_alone(
    command, artifact: Path, fresh: Mapping[str, Golden], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_goldens(monkeypatch, fresh)
    done = command("replay", "--artifact", artifact, "--accept", "for no reason")
    assert (done.code, "nothing-to-accept" in done.verdict) == (0, True)
    assert not any(place.iterdir())
    assert (place.parent / "CHANGELOG.md").read_text() == CHANGELOG


@pytest.mark.parametrize(
    "arguments",
    [
        ("--accept", ""),
        ("--accept", " \n"),
        ("--accept", "why", "--groups", "core"),
        ("--accept", "why", "--no-partials"),
    ],
)
def test_an_incomplete_acceptance_is_a_usage_error(
    command, artifact: Path, place: Path, arguments: tuple[str, ...]
) -> None:
    assert command("replay", "--artifact", artifact, *arguments).code == 2
    assert not any(place.iterdir())


def test_goldens_never_come_from_a_callable(command, callables: str, place: Path) -> None:
    done = command(
        "replay", "--backend", "host", "--callable", f"{callables}:with_partials", "--accept", "why"
    )
    assert (done.code, "built kernel" in done.verdict) == (2, True)
    assert not any(place.iterdir())


def test_a_group_over_its_budget_is_refused(
    command, artifact: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_goldens(monkeypatch, {})
    monkeypatch.setattr(oracle, "budget", lambda reference: 0.5 * oracle.floor(reference))
    done = command("replay", "--artifact", artifact, "--accept", "why not")
    assert (done.code, "over-budget" in done.verdict) == (1, True)
    assert not any(place.iterdir())
    assert (place.parent / "CHANGELOG.md").read_text() == CHANGELOG


def test_a_golden_that_cannot_be_written_leaves_the_changelog_alone(
    command, artifact: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_options: object) -> None:
        raise OSError("no space left on device")

    stored_goldens(monkeypatch, {})
    monkeypatch.setattr(golden, "write", full)
    assert command("replay", "--artifact", artifact, "--accept", "why").code == 5
    assert (place.parent / "CHANGELOG.md").read_text() == CHANGELOG
    assert [path.name for path in place.parent.glob(".CHANGELOG*")] == []


def worse(old: Golden) -> Golden:
    """The same golden, further from the truth."""
    changed = old.out.clone()
    changed[0, 0, 0] *= 2
    return dataclasses.replace(old, out=changed)
