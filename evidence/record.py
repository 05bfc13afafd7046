"""One record: one measurement of one artifact, as it is written to disk. It never changes afterwards."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from evidence import instrument, machine, places, portable
from evidence.instrument import Instrument

SCHEMA = 1
_T = TypeVar("_T")

OUTCOMES = ("pass", "fail", "unknown", "error")


class RecordError(ValueError):
    """A record that can't be read or written; the message names what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why an outcome is what it is: a code (`python -m evidence explain CODE`) and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The binary that a record is about. `code_digest` is None for a library without a manifest.

    `binding` is the digest of the Python through which it was called; older records have none.
    """

    backend: str
    arch: str
    sha256: str
    code_digest: str | None = None
    source_digest: str | None = None
    revision: str | None = None
    dirty: bool | None = None
    binding: str | None = None
    toolchain: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Short name for a person."""
        return f"{self.backend} {self.arch}"


class BinaryLike(Protocol):
    """What is known of a library; `artifacts.Binary` fits."""

    @property
    def backend(self) -> str: ...
    @property
    def arch(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def code_digest(self) -> str | None: ...
    @property
    def source_digest(self) -> str | None: ...
    @property
    def toolchain(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, kw_only=True)
class Record:
    """One measurement. `selection` says what was covered, e.g. {"groups": "core", "partials": true}."""

    kind: str
    artifact: Subject
    instrument: Instrument
    machine: Mapping[str, Any]
    inputs: str
    selection: Mapping[str, Any]
    outcome: str
    reasons: tuple[Reason, ...]
    results: Mapping[str, Any]
    command: tuple[str, ...]
    started_at: str
    duration_s: float
    run_id: str
    schema: int = SCHEMA

    @property
    def id(self) -> str:
        """SHA-256 over all fields: the record's name."""
        return hashlib.sha256(_canonical(body(self))).hexdigest()


def subject_of(binary: BinaryLike, *, revision: str | None, dirty: bool | None) -> Subject:
    """The subject of a library that came from a revision, or from none."""
    return Subject(
        backend=binary.backend,
        arch=binary.arch,
        sha256=binary.sha256,
        code_digest=binary.code_digest,
        source_digest=binary.source_digest,
        revision=revision,
        dirty=dirty,
        toolchain=dict(binary.toolchain),
    )


def make(
    *,
    kind: str,
    artifact: Subject,
    inputs: str,
    selection: Mapping[str, Any],
    outcome: str,
    reasons: Sequence[Reason] = (),
    results: Mapping[str, Any] | None = None,
    started_at: datetime,
    duration_s: float,
    command: Sequence[str] | None = None,
    machine_seen: Mapping[str, Any] | None = None,
) -> Record:
    """A record of a measurement that just ran here; instrument, machine and run are filled in.

    `started_at` must be timezone-aware. `inputs` is the fixtures' manifest hash, "" where none are used.
    A pass needs no reason; every other outcome needs one, else RecordError.
    """
    if started_at.tzinfo is None:
        raise RecordError("started_at has no timezone: use datetime.now(UTC)")
    record = Record(
        kind=kind,
        artifact=replace(artifact, binding=_binding()),
        instrument=instrument.of(kind),
        machine=dict(machine.describe() if machine_seen is None else machine_seen),
        inputs=inputs,
        selection=dict(selection),
        outcome=outcome,
        reasons=tuple(reasons),
        results=portable.without_root(dict(results or {})),
        command=portable.command(sys.argv if command is None else command),
        started_at=started_at.astimezone(UTC).isoformat(timespec="milliseconds"),
        duration_s=float(duration_s),
        run_id=os.environ.get(places.RUN_VARIABLE) or f"single-{uuid.uuid4().hex[:12]}",
    )
    return parse(json.loads(dumps(record)), "new record")


def body(record: Record) -> dict[str, Any]:
    """The JSON object of a record, without its id."""
    plain = _plain(asdict(record))
    assert isinstance(plain, dict)
    if record.artifact.binding is None:  # as it was written, or its id would be another
        del plain["artifact"]["binding"]
    return plain


def as_json(record: Record) -> dict[str, Any]:
    """A record's JSON value."""
    return {**body(record), "id": record.id}


def dumps(record: Record) -> str:
    """The text of a record's file."""
    return json.dumps(as_json(record), indent=1, sort_keys=True, allow_nan=False) + "\n"


def parse(value: object, where: str) -> Record:
    """A record from its JSON value; RecordError names `where` and the field that is wrong."""
    if not isinstance(value, dict):
        raise RecordError(f"{where}: not a JSON object")
    if value.get("schema") != SCHEMA:
        raise RecordError(f"{where}: schema {value.get('schema')!r}, this version reads {SCHEMA}")
    content = dict(value)
    stated = content.pop("id", None)
    if stated != hashlib.sha256(_canonical(content)).hexdigest():
        raise RecordError(
            f"{where}: its bytes don't match its id: cut short, or changed after it was written"
        )
    return _from_content(content, where)


def _binding() -> str:
    # Looked up where something was measured, with the product loaded: who reads records needs no torch.
    return str(importlib.import_module("grouped_attention.identity").binding_digest())


def _from_content(content: dict[str, Any], where: str) -> Record:
    _check_keys(content, Record, where)
    _check_plain_fields(content, where)
    reasons = _list_of(content["reasons"], Reason, where, "reasons")
    _require(bool(reasons) or content["outcome"] == "pass", where, "reasons (needed unless it passes)")
    _check_time(content["started_at"], where)
    read = {
        "artifact": _subject(content["artifact"], where),
        "instrument": _object(content["instrument"], Instrument, where, "instrument"),
        "reasons": tuple(reasons),
        "command": tuple(content["command"]),
        "duration_s": float(content["duration_s"]),
    }
    return Record(**{**content, **read})


def _check_plain_fields(content: Mapping[str, Any], where: str) -> None:
    for name in ("kind", "inputs", "outcome", "started_at", "run_id"):
        _require(isinstance(content[name], str), where, name)
    for name in ("machine", "selection", "results"):
        _require(isinstance(content[name], dict), where, name)
    _require(content["outcome"] in OUTCOMES, where, "outcome")
    _require(bool(content["kind"]) and bool(content["run_id"]), where, "kind or run_id")
    duration, command = content["duration_s"], content["command"]
    is_number = isinstance(duration, int | float) and not isinstance(duration, bool)
    _require(is_number and duration >= 0, where, "duration_s")
    _require(isinstance(command, list) and all(isinstance(word, str) for word in command), where, "command")


def _subject(value: object, where: str) -> Subject:
    subject = parse_subject(value, where)
    _require(bool(subject.sha256), where, "artifact.sha256")
    return subject


def parse_subject(value: object, where: str) -> Subject:
    """A subject from its JSON value; RecordError names the field that is wrong."""
    if not isinstance(value, dict):
        raise RecordError(f"{where}: artifact is not an object")
    value = {"binding": None, **value}
    _check_keys(value, Subject, where)
    for name in ("backend", "arch", "sha256"):
        _require(isinstance(value[name], str), where, f"artifact.{name}")
    for name in ("code_digest", "source_digest", "revision", "binding"):
        _require(value[name] is None or isinstance(value[name], str), where, f"artifact.{name}")
    _require(value["dirty"] is None or isinstance(value["dirty"], bool), where, "artifact.dirty")
    toolchain = value["toolchain"]
    is_flat = isinstance(toolchain, dict) and all(isinstance(item, str) for item in toolchain.values())
    _require(is_flat, where, "artifact.toolchain")
    return Subject(**value)


def _list_of(value: object, kind: type[Reason], where: str, name: str) -> list[Reason]:
    if not isinstance(value, list):
        raise RecordError(f"{where}: field {name!r} is not a list")
    return [_object(item, kind, where, name) for item in value]


def _object(value: object, kind: type[_T], where: str, name: str) -> _T:
    if not isinstance(value, dict):
        raise RecordError(f"{where}: field {name!r} is not an object")
    _check_keys(value, kind, where)
    _require(all(isinstance(item, str) for item in value.values()), where, name)
    return kind(**value)


def _check_keys(value: Mapping[str, Any], kind: type, where: str) -> None:
    known = set(kind.__dataclass_fields__)  # type: ignore[attr-defined]
    if set(value) != known:
        raise RecordError(
            f"{where}: missing or unknown fields {sorted(set(value) ^ known)} in {kind.__name__}"
        )


def _check_time(text: str, where: str) -> None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise RecordError(f"{where}: started_at {text!r} is not a time") from error
    _require(moment.tzinfo is not None, where, "started_at (needs a timezone)")


def _require(condition: bool, where: str, name: str) -> None:
    if not condition:
        raise RecordError(f"{where}: field {name!r} is not valid")


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such numbers, and a reader that meets one would call the record damaged.
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
