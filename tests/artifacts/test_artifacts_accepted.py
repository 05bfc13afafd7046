"""What a side says of goldens that its changelog explains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts import sides
from artifacts.sides import Side


def test_a_sides_changelog_is_its_commits(
    repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides, "root", lambda: repository)
    before = git(repository, "rev-parse", "HEAD").strip()
    entry = "sm_70, bits changed: accepted because of a reason"
    (repository / "CHANGELOG.md").write_text(f"# Changelog\n\n### Other\n\n### {entry}\n\ntable\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "renew")
    after = git(repository, "rev-parse", "HEAD").strip()
    (repository / "CHANGELOG.md").write_text("edited since\n")
    said = [sides.to_json(Side(origin="x", revision=name))["accepted"] for name in (before, after, None)]
    assert said == [[], [entry], []]
