"""Records and their store: roundtrips, refusals, append-only."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence import instrument, record, store
from evidence.instrument import Instrument
from evidence.policy import POLICY
from evidence.question import Question
from evidence.record import Reason, Record, RecordError, Subject

TEXT = st.text(max_size=12)
SOME = st.text(min_size=1, max_size=12)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OBJECT = st.dictionaries(TEXT, PLAIN, max_size=3)
SUBJECTS = st.builds(
    Subject,
    backend=TEXT,
    arch=TEXT,
    sha256=SOME,
    code_digest=st.none() | TEXT,
    source_digest=st.none() | TEXT,
    revision=st.none() | TEXT,
    dirty=st.none() | st.booleans(),
    binding=st.none() | TEXT,
    toolchain=st.dictionaries(TEXT, TEXT, max_size=2),
)
RECORDS = st.builds(
    Record,
    kind=SOME,
    artifact=SUBJECTS,
    instrument=st.builds(Instrument, version=TEXT, digest=TEXT),
    machine=OBJECT,
    inputs=TEXT,
    selection=OBJECT,
    outcome=st.sampled_from(record.OUTCOMES),
    reasons=st.lists(st.builds(Reason, code=TEXT, text=TEXT), min_size=1, max_size=2).map(tuple),
    results=OBJECT,
    command=st.lists(TEXT, max_size=3).map(tuple),
    started_at=st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    duration_s=st.floats(0, 1e6),
    run_id=SOME,
)
CPU = Subject(backend="host", arch="sm_70", sha256="f" * 64)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def made(**fields: Any) -> Record:
    """A record of this machine."""
    defaults: dict[str, Any] = {
        "kind": "replay",
        "artifact": CPU,
        "inputs": "h",
        "selection": {"groups": "core"},
        "outcome": "pass",
        "started_at": NOW,
        "duration_s": 1,
        "machine_seen": {"cpu": "test"},
    }
    return record.make(**{**defaults, **fields})


@pytest.fixture
def sample(unchanged: Question, make_record: Callable[..., Record]) -> Record:
    return make_record(unchanged, POLICY[0])


@given(value=RECORDS)
def test_roundtrip(value: Record) -> None:
    back = record.parse(json.loads(record.dumps(value)), "here")
    assert back == value
    assert back.id == value.id


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(value=RECORDS, data=st.data(), other=JSON)
def test_any_edited_field_is_refused(value: Record, data: st.DataObject, other: Any) -> None:
    body = json.loads(record.dumps(value))
    name = data.draw(st.sampled_from(sorted(body)))
    if body[name] == other and type(body[name]) is type(other):
        return
    with pytest.raises(RecordError, match="here"):
        record.parse({**body, name: other}, "here")


@given(value=JSON)
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(RecordError):
        record.parse(value, "here")


BAD: dict[str, tuple[str, Any]] = {
    "outcome": ("outcome", "fine"),
    "reason": ("reasons", []),
    "duration": ("duration_s", -1),
    "bool": ("duration_s", True),
    "time": ("started_at", "yesterday"),
    "timezone": ("started_at", "2026-01-02T03:04:05"),
    "hash": ("artifact", {**record.body(made())["artifact"], "sha256": ""}),
    "toolchain": ("artifact", {**record.body(made())["artifact"], "toolchain": {"cxx": 1}}),
    "extra": ("more", 1),
    "command": ("command", "python"),
}


@pytest.mark.parametrize("case", BAD)
def test_resealed_nonsense_is_refused(case: str) -> None:
    name, value = BAD[case]
    content = {**record.body(made(outcome="fail", reasons=[Reason(code="a", text="b")])), name: value}
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(RecordError):
        record.parse({**content, "id": hashlib.sha256(text).hexdigest()}, "here")


def test_make_fills_in_who_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELGATE_RUN", "run-7")
    one = made()
    assert one.run_id == "run-7"
    assert one.instrument == instrument.of("replay")
    assert one.started_at == "2026-01-02T00:00:00.000+00:00"
    monkeypatch.delenv("KERNELGATE_RUN")
    assert made().run_id != made().run_id


def test_a_record_from_before_the_python_layer_counted_keeps_its_name() -> None:
    old = record.body(made())
    del old["artifact"]["binding"]
    sealed = {**old, "id": hashlib.sha256(record._canonical(old)).hexdigest()}
    read = record.parse(sealed, "x")
    assert (read.id, read.artifact.binding) == (sealed["id"], None)


def test_commands_name_no_folder_of_this_machine() -> None:
    root = str(Path(record.__file__).parents[1])
    argv = [f"{root}/regression/__main__.py", "replay", "--artifact", f"{root}/.kernelgate/artifacts/x"]
    assert made(command=argv).command == (
        "python",
        "-m",
        "regression",
        "replay",
        "--artifact",
        ".kernelgate/artifacts/x",
    )
    results = {"notes": [f"base: given path {root}/old"], "by": {"x": f"{root}/y"}, "n": [1.5]}
    assert made(results=results).results == {"notes": ["base: given path old"], "by": {"x": "y"}, "n": [1.5]}


def test_make_refuses_what_could_not_be_read_back() -> None:
    with pytest.raises(RecordError, match="timezone"):
        made(started_at=datetime(2026, 1, 2))
    with pytest.raises(RecordError, match="reasons"):
        made(outcome="fail")
    with pytest.raises(TypeError):
        made(results={"tensor": object()})


def test_numbers_that_json_lacks_become_texts() -> None:
    assert made(results={"x": [float("nan"), float("-inf")]}).results == {"x": ["nan", "-inf"]}


def test_append_and_load(sample: Record) -> None:
    other = replace(sample, started_at="2025-01-01T00:00:00+00:00")
    for value in (sample, other):
        store.append(value)
    assert store.load().records == (other, sample)
    assert store.load().unreadable == ()


def test_append_keeps_one_and_never_overwrites(sample: Record) -> None:
    path = store.append(sample)
    stamp = path.stat().st_mtime_ns
    assert store.append(sample) == path
    assert path.stat().st_mtime_ns == stamp
    path.write_text("damaged")
    with pytest.raises(RecordError):
        store.append(sample)
    assert path.read_text() == "damaged"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", ["cut", "edited", "empty", "other schema", "not a record"])
def test_damaged_files_are_named(sample: Record, damage: str) -> None:
    path = store.append(sample)
    text = path.read_text()
    changed = {
        "cut": text[: len(text) // 2],
        "edited": text.replace('"pass"', '"fail"'),
        "empty": "",
        "other schema": text.replace('"schema": 1', '"schema": 2'),
        "not a record": "[]",
    }
    path.write_text(changed[damage])
    loaded = store.load()
    assert loaded.records == ()
    (named,) = loaded.unreadable
    assert path.name in named.why


def test_a_folder_or_a_lost_link_is_named(home: Path) -> None:
    (home / "records" / "x.json").mkdir(parents=True)
    (home / "records" / "y.json").symlink_to("nowhere")
    assert len(store.load().unreadable) == 2


def test_an_interrupted_write_is_no_record(home: Path, sample: Record) -> None:
    (home / "records").mkdir(parents=True)
    (home / "records" / ".new-abc").write_text(record.dumps(sample)[:100])
    assert store.load() == store.Loaded()


@pytest.mark.usefixtures("home")
def test_a_store_that_cant_be_written_is_known_before(tmp_path: Path) -> None:
    assert store.trouble() is None and store.trouble(tmp_path / "new") is None
    (tmp_path / "file").write_text("")
    said = store.trouble(tmp_path / "file" / "records")
    assert said is not None and "set $KERNELGATE_HOME to a folder that can be written" in said


def test_an_empty_store_is_empty(tmp_path: Path) -> None:
    assert store.load(tmp_path / "nowhere") == store.Loaded()


def _append(folder: Path, number: int) -> None:
    store.append(made(results={"n": number}), folder)


def test_many_writers_at_once(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.starmap(_append, [(tmp_path, n) for n in range(8)])
    assert len(store.load(tmp_path).records) == 8


def test_instrument_follows_the_sources(tmp_path: Path) -> None:
    (tmp_path / "regression").mkdir()
    (tmp_path / "evidence").mkdir()
    source = tmp_path / "regression" / "a.py"
    source.write_text("1")
    before = instrument.of("replay", tmp_path)
    (tmp_path / "regression" / "data.bin").write_text("no source")
    (tmp_path / "regression" / "manifest.json").write_text("held by its own hash")
    (tmp_path / "evidence" / "report.py").write_text("another kind's")
    assert instrument.of("replay", tmp_path) == before
    source.rename(tmp_path / "regression" / "b.py")
    renamed = instrument.of("replay", tmp_path)
    (tmp_path / "regression" / "b.py").write_text("2")
    edited = instrument.of("replay", tmp_path)
    (tmp_path / "regression" / "corpus.json").write_text("[]")
    assert len({before.digest, renamed.digest, edited.digest, instrument.of("replay", tmp_path).digest}) == 4
    assert instrument.of("unheard-of", tmp_path) != before
