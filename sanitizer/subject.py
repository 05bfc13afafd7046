"""Which binary is checked, and the build of it that runs."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import artifacts
from artifacts import ArtifactsError, Binary, Side, Targets
from artifacts.sides import from_path
from evidence import record
from evidence.record import Subject
from sanitizer import host

TWIN = "address"
# Checks inline, which call a report, or as calls; by name in the table of symbols.
CHECKS = re.compile(rb"\0__asan_(?:report_)?(?:exp_)?(?:load|store)(?:\d+|N|_n)(?:_noabort)?\0")
LINKED = re.compile(rb"\0(?:libasan\.so[.\d]*|__asan_init)\0")
MARK_OF_UBSAN = b"__ubsan_handle"


class SubjectError(RuntimeError):
    """There is nothing to check, with a reason code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a record will be about, and the library that runs in its place (on a GPU the same one)."""

    subject: Subject
    library: Path
    running: Binary
    dirty: tuple[str, ...]


def resolve(options: argparse.Namespace, *, twin: bool) -> Checked:
    """The binary that the options name; on the host, with `twin`, its instrumented twin runs in its place.

    SubjectError when there is none.
    """
    try:
        side = _side(options)
        binary = _only(side, options)
        as_it_is = not twin or binary.backend == "cuda" or instrumented(binary.library)
        running = binary if as_it_is else _twin(binary, side)
    except ArtifactsError as error:
        raise SubjectError(error.code, error.text) from error
    subject = record.subject_of(binary, revision=side.revision, dirty=bool(side.dirty))
    return Checked(subject=subject, library=running.library, running=running, dirty=side.dirty)


def instrumented(library: Path) -> bool:
    """True when the library calls AddressSanitizer's checks."""
    return CHECKS.search(library.read_bytes()) is not None


def needs_runtime(library: Path) -> bool:
    """True when the library can't be loaded without AddressSanitizer's runtime, checks or none."""
    return instrumented(library) or LINKED.search(library.read_bytes()) is not None


def checks(library: Path) -> str:
    """The compiler's checks that an instrumented library calls."""
    seen = MARK_OF_UBSAN in library.read_bytes()
    return "AddressSanitizer and UBSan" if seen else "AddressSanitizer alone, no UBSan"


def copy(library: Path, folder: Path) -> Path:
    """The library alone: an instrumented one can't say its precision version to the build, so its
    manifest lacks it.
    """
    return Path(shutil.copy(library, folder / "library.so"))


def _side(options: argparse.Namespace) -> Side:
    path = options.library or options.artifact
    if path is not None:
        return _opened(path)
    targets = Targets(backends=(options.backend,), architectures=(options.arch,))
    return artifacts.candidate("worktree", targets, progress=_silent)


def _opened(path: Path) -> Side:
    """The side of a path; an instrumented library can be asked what it is only beside its runtime."""
    if not path.is_file() or not needs_runtime(path):
        return from_path(path)
    before = dict(os.environ)
    os.environ.update(host.environment())
    try:
        return from_path(path)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _only(side: Side, options: argparse.Namespace) -> Binary:
    if side.failures:
        raise SubjectError(side.failures[0].code, side.failures[0].text)
    wanted = (options.backend, options.arch)
    fitting = [
        b
        for b in side.binaries
        if all(w in (None, v) for w, v in zip(wanted, (b.backend, b.arch), strict=True))
    ]
    if len(fitting) != 1:
        there = ", ".join(f"{b.backend} {b.arch}" for b in side.binaries) or "nothing"
        raise SubjectError("no-target", f"{side.origin} holds {there}: choose with --backend and --arch")
    return fitting[0]


def _twin(binary: Binary, side: Side) -> Binary:
    """The address build of the same sources: the work tree's, else the revision's."""
    if binary.source_digest is None:
        what = "came without sources: compile it with -fsanitize=address -g, or pass an artifact"
        if needs_runtime(binary.library):
            what = (
                "is linked with AddressSanitizer, but compiled without its checks: give -fsanitize=address -g"
            )
            what += " where it is compiled, too"
        raise SubjectError("not-instrumented", f"{binary.library.name} {what}")
    targets = Targets(backends=("host",), architectures=(binary.arch,), variant=TWIN)
    for revision in ("worktree", side.revision):
        made = None if revision is None else artifacts.candidate(revision, targets, progress=_silent)
        if made is not None and made.failures:
            raise SubjectError(made.failures[0].code, made.failures[0].text)
        if made is not None and made.binaries[0].source_digest == binary.source_digest:
            return made.binaries[0]
    raise SubjectError(
        "twin-differs", "the artifact's sources are neither this work tree's nor its revision's"
    )


def _silent(_text: str) -> None:
    """Builds report to nobody."""
