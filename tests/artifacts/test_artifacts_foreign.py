"""Libraries without a manifest: what they are is asked of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artifacts import foreign, sides
from artifacts.errors import ArtifactsError

WRONG = (
    (1, "x"),
    ("host", "sm_75"),
    ("host", "sm_90)\nverdict: admitted (x"),
    ("abacus", "sm_70"),
    ("host", ["sm_70"]),
)
FOREIGN = """
import json, sys
print("a banner\\ndescribe:", json.dumps({"backend": "host", "arch": "sm_70"}))
print("bye")
"""


def test_foreign_library_is_asked_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "x.so"
    library.write_bytes(foreign.ELF)
    with pytest.raises(ArtifactsError) as caught:
        sides.from_path(library)
    assert caught.value.code == "library-refused"
    monkeypatch.setattr(foreign, "_ASK", FOREIGN)
    (binary,) = sides.from_path(library).binaries
    assert (binary.backend, binary.arch, binary.code_digest) == ("host", "sm_70", None)


@pytest.mark.parametrize(
    "answer",
    ["", "[]", "{}", *(json.dumps({"backend": b, "arch": a}) for b, a in WRONG)],
)
def test_foreign_library_that_answers_nonsense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(foreign, "_ASK", f"print('describe:', {answer!r})")
    library = tmp_path / "x.so"
    library.write_bytes(foreign.ELF)
    with pytest.raises(ArtifactsError, match="describe") as caught:
        foreign.target(library)
    assert caught.value.code == "library-refused" and len(str(caught.value).splitlines()) == 1


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_text("notes")
    with pytest.raises(ArtifactsError, match="not a shared library"):
        foreign.target(tmp_path / "x.so")
