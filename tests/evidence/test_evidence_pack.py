"""Packs: what travels, and what is refused by name."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidence import pack, record, store
from evidence.pack import PackError
from evidence.question import Question
from evidence.record import Record


@pytest.fixture
def records(changed: Question, complete: Callable[[Question], list[Record]]) -> list[Record]:
    return complete(changed)


def forge(path: Path, files: Mapping[str, bytes], index: object = None) -> Path:
    """A pack of any files, with a true index unless another is given."""
    if index is None:
        index = {
            "schema": 1,
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        }
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("index.json", json.dumps(index))
        for name, data in files.items():
            out.writestr(name, data)
    return path


def refusals(path: Path, folder: Path) -> dict[str, str]:
    return dict(pack.read(path, folder).refused)


def test_roundtrip_keeps_duplicates_once(records: list[Record], tmp_path: Path) -> None:
    pack.write(records, tmp_path / "a.zip")
    there = tmp_path / "there"
    store.append(records[0], there)
    done = pack.read(tmp_path / "a.zip", there)
    assert (len(done.added), len(done.known), done.refused) == (len(records) - 1, 1, ())
    assert {r.id for r in store.load(there).records} == {r.id for r in records}
    again = pack.read(tmp_path / "a.zip", there)
    assert (again.added, len(again.known)) == ((), len(records))


def test_equal_records_give_equal_packs(records: list[Record], tmp_path: Path) -> None:
    pack.write(records, tmp_path / "a.zip")
    pack.write(list(reversed(records)), tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_a_pack_is_never_overwritten(records: list[Record], tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_text("precious")
    with pytest.raises(FileExistsError):
        pack.write(records, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_text() == "precious"


@pytest.mark.parametrize(
    "name",
    [
        "../evil.json",
        "records/../../evil.json",
        "/evil.json",
        "records/.hidden.json",
        "records/a/b.json",
        "x.json",
        "records/x.txt",
        "records\\x.json",
    ],
)
def test_names_that_escape_are_refused(records: list[Record], tmp_path: Path, name: str) -> None:
    good = record.dumps(records[0]).encode()
    path = forge(tmp_path / "a.zip", {name: good, "records/good.json": record.dumps(records[1]).encode()})
    there = tmp_path / "deep" / "there"
    done = pack.read(path, there)
    assert [why for _, why in done.refused] == ["a name that doesn't belong into a pack"]
    assert len(done.added) == 1
    assert sorted(p.name for p in tmp_path.rglob("*.json")) == [store.file_name(records[1])]


def test_tampered_bytes_are_refused(records: list[Record], tmp_path: Path) -> None:
    good = record.dumps(records[0]).encode()
    edited = good.replace(b'"pass"', b'"fail"')
    index = {"schema": 1, "files": {"records/a.json": hashlib.sha256(good).hexdigest()}}
    path = forge(tmp_path / "a.zip", {"records/a.json": edited}, index)
    assert "don't match the index" in refusals(path, tmp_path / "there")["records/a.json"]
    resealed = forge(tmp_path / "b.zip", {"records/a.json": edited})
    assert "don't match its id" in refusals(resealed, tmp_path / "there")["records/a.json"]
    assert store.load(tmp_path / "there").records == ()


def test_files_and_index_must_agree(records: list[Record], tmp_path: Path) -> None:
    good = record.dumps(records[0]).encode()
    index = {"schema": 1, "files": {"records/gone.json": "0" * 64}}
    refused = refusals(forge(tmp_path / "a.zip", {"records/a.json": good}, index), tmp_path / "there")
    assert refused["records/a.json"] == "not in the index"
    assert "copies" in refused["records/gone.json"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(records: list[Record], tmp_path: Path) -> None:
    path = forge(tmp_path / "a.zip", {"records/a.json": record.dumps(records[0]).encode()})
    with zipfile.ZipFile(path, "a") as out:
        out.writestr("records/a.json", record.dumps(records[1]))
    assert refusals(path, tmp_path / "there") == {"records/a.json": "2 copies of it in the pack"}


def test_schema_of_records_is_checked(records: list[Record], tmp_path: Path) -> None:
    body = {**record.body(records[0]), "schema": 9}
    path = forge(tmp_path / "a.zip", {"records/a.json": json.dumps(body).encode(), "records/b.json": b"{"})
    refused = refusals(path, tmp_path / "there")
    assert "schema 9" in refused["records/a.json"]
    assert set(refused) == {"records/a.json", "records/b.json"}


def test_oversized_files_are_refused(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = forge(tmp_path / "a.zip", {"records/a.json": record.dumps(records[0]).encode() + b" " * 5000})
    monkeypatch.setattr(pack, "MAX_RECORD_BYTES", 5000)
    assert "larger than" in refusals(path, tmp_path / "there")["records/a.json"]


@pytest.mark.parametrize(
    "index",
    [{}, [], {"schema": 2, "files": {}}, {"schema": 1, "files": []}, {"schema": 1, "files": {"a": 1}}],
)
def test_unsound_index_refuses_all(tmp_path: Path, index: object) -> None:
    with pytest.raises(PackError):
        pack.read(forge(tmp_path / "a.zip", {}, index), tmp_path / "there")


def test_no_index_refuses_all(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr("records/a.json", "{}")
    with pytest.raises(PackError, match=r"index\.json"):
        pack.read(tmp_path / "a.zip", tmp_path / "there")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=200))
def test_noise_is_no_pack(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "noise.zip").write_bytes(data)
    with pytest.raises(PackError):
        pack.read(tmp_path / "noise.zip", tmp_path / "there")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(at=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.booleans())
def test_damaged_packs_add_nothing_false(
    records: list[Record], tmp_path: Path, at: int, byte: int, cut: bool
) -> None:
    path, there = tmp_path / "p.zip", tmp_path / f"there-{at}-{byte}-{cut}"
    path.unlink(missing_ok=True)
    pack.write(records[:2], path)
    whole = bytearray(path.read_bytes())
    place = at % len(whole)
    whole[place] = byte
    path.write_bytes(bytes(whole[:place]) if cut else bytes(whole))
    with contextlib.suppress(PackError):
        pack.read(path, there)
    assert {r.id for r in store.load(there).records} <= {r.id for r in records}
    assert store.load(there).unreadable == ()


def test_a_record_known_under_another_name_is_known(records: list[Record], tmp_path: Path) -> None:
    path = forge(tmp_path / "a.zip", {"records/renamed.json": record.dumps(records[0]).encode()})
    store.append(records[0], tmp_path / "there")
    assert pack.read(path, tmp_path / "there").known == ("records/renamed.json",)
    other = replace(records[0], run_id="another")
    assert pack.read(
        forge(tmp_path / "b.zip", {"records/x.json": record.dumps(other).encode()}), tmp_path / "there"
    ).added
