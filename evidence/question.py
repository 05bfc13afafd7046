"""What a verdict is asked about: the binaries of candidate and base, and which evidence is fresh."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence import record
from evidence.record import Reason, RecordError, Subject

SIDE_SCHEMA = 1
_LOCATION = ("library", "directory")


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side's binaries. `missing` says why there is none, `failed` why a (backend, arch) is not built.

    `binding` is the digest of the Python layer that belongs to it, `places` says where its binaries lie here,
    `origin` how it was chosen, `accepted` the headings of its changelog's entries for renewed goldens.
    """

    subjects: tuple[Subject, ...] = ()
    revision: str | None = None
    dirty: tuple[str, ...] = ()
    binding: str | None = None
    missing: Reason | None = None
    failed: Mapping[tuple[str, str], Reason] = field(default_factory=dict)
    places: Mapping[tuple[str, str], str] = field(default_factory=dict)
    origin: str = ""
    accepted: tuple[str, ...] = ()

    def find(self, backend: str, arch: str) -> Subject | None:
        """The binary of one backend and architecture."""
        return next((s for s in self.subjects if (s.backend, s.arch) == (backend, arch)), None)


@dataclass(frozen=True, kw_only=True)
class Question:
    """`inputs` is the fixtures' manifest hash; `instruments` maps a kind to the digest of a fresh record.

    `run_id` restricts evidence that needs no GPU to one run; None takes any.
    """

    candidate: Side
    base: Side
    inputs: str
    instruments: Mapping[str, str] = field(default_factory=dict)
    run_id: str | None = None


def read_side(path: Path) -> Side:
    """A side from the JSON of `python -m artifacts build | base --json`; RecordError when it is not one."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        advice = "it should be what `python -m artifacts build --json` or `base --json` wrote"
        raise RecordError(f"{path}: {error}; {advice}") from error
    return parse_side(value, str(path))


def parse_side(value: object, where: str) -> Side:
    """A side from its JSON value; RecordError names what is wrong."""
    if not isinstance(value, dict) or value.get("schema") != SIDE_SCHEMA:
        raise RecordError(
            f"{where}: not the output of `python -m artifacts build --json` (schema {SIDE_SCHEMA})"
        )
    try:
        return _side(value, where)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{where}: not understood ({error!r})") from error


def _side(value: Mapping[str, Any], where: str) -> Side:
    missing, revision, binding = value["missing"], value["revision"], value.get("binding")
    if not all(item is None or isinstance(item, str) for item in (revision, binding)):
        raise RecordError(f"{where}: revision or binding is not a text")
    dirty = tuple(value["dirty"])
    if not all(isinstance(name, str) for name in dirty) or isinstance(value["dirty"], str):
        raise RecordError(f"{where}: dirty is not a list of files")
    return Side(
        subjects=tuple(_subject(item, where) for item in value["artifacts"]),
        revision=revision,
        origin=str(value.get("origin", "")),
        accepted=tuple(map(str, value.get("accepted", ()))),
        dirty=dirty,
        binding=binding,
        missing=None if missing is None else Reason(code=missing["code"], text=missing["text"]),
        places={(item["backend"], item["arch"]): _place(item) for item in value["artifacts"]},
        failed={(item["backend"], item["arch"]): _failure(item) for item in value["failed"]},
    )


def _subject(item: Mapping[str, Any], where: str) -> Subject:
    return record.parse_subject({k: v for k, v in item.items() if k not in _LOCATION}, where)


def _place(item: Mapping[str, Any]) -> str:
    return str(item.get("directory") or item.get("library"))


def _failure(item: Mapping[str, Any]) -> Reason:
    first = (str(item["text"]).splitlines() or ["no message"])[0]
    log = f" (log: {item['log']})" if item["log"] else ""
    return Reason(
        code=item.get("code", "build-failed"), text=f"{item['backend']} {item['arch']}: {first}{log}"
    )
