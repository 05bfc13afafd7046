"""Manifests: what is read back, and what is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouped_attention.manifest import (
    Manifest,
    ManifestError,
    dumps,
    open_artifact,
    parse,
    read,
    sha256_bytes,
    to_json,
    verify_library,
)

LIBRARY = b"library bytes"
HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
TEXT = st.text(min_size=1, max_size=20)
NAME = st.text("abcdef-_.0", min_size=1, max_size=12).filter(lambda name: name not in {".", ".."})


def sample() -> Manifest:
    digest = sha256_bytes(LIBRARY)
    return Manifest(
        backend="host",
        arch="sm_70",
        variant="release",
        library="x.so",
        sha256=digest,
        code_digest="c" * 64,
        source_digest="d" * 64,
        flags=("-O3",),
        toolchain={"cxx": "g++ 12"},
        digest="e" * 64,
        files={"x.so": digest},
        precision_version=4,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.so").write_bytes(LIBRARY)
    (tmp_path / "manifest.json").write_text(dumps(sample()))
    return tmp_path


@given(
    texts=st.lists(TEXT, min_size=3, max_size=3),
    hashes=st.lists(HEX, min_size=4, max_size=4),
    flags=st.lists(TEXT),
    toolchain=st.dictionaries(TEXT, TEXT),
    library=NAME,
    others=st.dictionaries(NAME, HEX),
    version=st.none() | st.integers(),
    revision=st.none() | TEXT,
)
def test_roundtrip(
    texts: list[str],
    hashes: list[str],
    flags: list[str],
    toolchain: dict[str, str],
    library: str,
    others: dict[str, str],
    version: int | None,
    revision: str | None,
) -> None:
    manifest = Manifest(
        backend=texts[0],
        arch=texts[1],
        variant=texts[2],
        library=library,
        sha256=hashes[0],
        code_digest=hashes[1],
        source_digest=hashes[2],
        digest=hashes[3],
        flags=tuple(flags),
        toolchain=toolchain,
        files={**others, library: hashes[0]},
        precision_version=version,
        revision=revision,
    )
    assert parse(json.loads(dumps(manifest)), "here") == manifest


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(field=st.sampled_from(sorted(to_json(sample()))), value=JSON)
def test_any_edited_field_is_refused(field: str, value: Any) -> None:
    body = to_json(sample())
    if body[field] == value and type(body[field]) is type(value):
        return
    with pytest.raises(ManifestError, match="here"):
        parse({**body, field: value}, "here")


@given(value=JSON)
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(ManifestError):
        parse(value, "here")


@pytest.mark.parametrize("name", ["../x.so", "/etc/passwd", "a/b", "..", ""])
def test_names_never_leave_the_folder(name: str) -> None:
    manifest = replace(sample(), files={**sample().files, name: "f" * 64})
    with pytest.raises(ManifestError, match="files"):
        parse(to_json(manifest), "here")


def test_good_folder_opens(folder: Path) -> None:
    assert open_artifact(folder).manifest == sample()
    assert verify_library(folder / "x.so") == sample()


def test_changed_library_is_named(folder: Path) -> None:
    (folder / "x.so").write_bytes(b"other")
    for check in (lambda: open_artifact(folder), lambda: verify_library(folder / "x.so")):
        with pytest.raises(ManifestError, match=r"x\.so: its bytes don't match"):
            check()


def test_missing_file_is_named(folder: Path) -> None:
    (folder / "x.so").unlink()
    with pytest.raises(ManifestError, match=r"x\.so: No such file"):
        open_artifact(folder)


def test_manifest_of_another_library_is_refused(folder: Path) -> None:
    (folder / "y.so").write_bytes(LIBRARY)
    with pytest.raises(ManifestError, match=r"describes x\.so"):
        verify_library(folder / "y.so")


def test_library_without_manifest_is_foreign(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(LIBRARY)
    assert verify_library(tmp_path / "x.so") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": 99}', "\xff"])
def test_unreadable_manifest_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(ManifestError, match=r"manifest\.json"):
        read(tmp_path / "manifest.json")


def test_library_hash_must_be_the_listed_one() -> None:
    body = to_json(replace(sample(), files={"x.so": "0" * 64}))
    with pytest.raises(ManifestError, match="sha256"):
        parse(body, "here")
