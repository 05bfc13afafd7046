"""Command line: `python -m artifacts build | base | doctor | list | clean`."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from artifacts import builds, doctor, shelf, sides
from artifacts.builds import ARCHITECTURES, BACKENDS, Targets
from artifacts.errors import ArtifactsError
from artifacts.sides import Side
from grouped_attention.build import VARIANTS

# What `clean` writes: folders of the store, named by what went into them.
ARTIFACT = re.compile(r"/[0-9a-f]{60,64}$")
EXIT_OK, EXIT_USAGE, EXIT_UNKNOWN, EXIT_ERROR = 0, 2, 4, 5


def parser() -> argparse.ArgumentParser:
    """The arguments of `python -m artifacts`."""
    top = argparse.ArgumentParser(
        prog="python -m artifacts", description="Identity of a binary, isolated builds."
    )
    verbs = top.add_subparsers(dest="verb", required=True)
    _build_options(verbs.add_parser("build", help="build one side's libraries, or take them from the store"))
    _base_options(verbs.add_parser("base", help="find the base and build it"))
    doctor_verb = verbs.add_parser("doctor", help="say what this machine can run, and why not the rest")
    list_verb = verbs.add_parser("list", help="list the store; checks every file against its manifest")
    clean = verbs.add_parser("clean", help="delete artifacts from the store")
    clean.add_argument("digest", nargs="*", help="first digits of what to delete")
    clean.add_argument("--all", action="store_true", help="everything, and the logs of failed builds")
    for verb in (doctor_verb, list_verb, clean):
        _json_option(verb)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; failures are one line on standard error."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE
    try:
        _prepare(options.json)
        code = int(VERBS[options.verb](options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except ArtifactsError as error:
        print(f"{error.code}: {error.text}", file=sys.stderr)
        return EXIT_USAGE if error.code == "usage" else EXIT_UNKNOWN
    except OSError as error:
        print(f"machinery: {error}", file=sys.stderr)
        return EXIT_ERROR
    except Exception:  # a bug of ours must not look like a rejection (exit code 1)
        traceback.print_exc()
        return EXIT_ERROR


def _build_options(verb: argparse.ArgumentParser) -> None:
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--rev", default=builds.WORKTREE, help='a revision, or "worktree" (default)')
    which.add_argument(
        "--source", type=Path, metavar="PATH", help="a kernels/ or artifact folder, or a library"
    )
    _target_options(verb)
    verb.add_argument("--variant", choices=sorted(VARIANTS), default="release", help="default: release")
    verb.add_argument(
        "--out", type=Path, metavar="DIR", help="also copy the artifacts there, to carry elsewhere"
    )
    _json_option(verb)


def _base_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--base", metavar="SPEC", help="revision, artifact folder or library; default: merge base with main"
    )
    verb.add_argument(
        "--rev", default=builds.WORKTREE, help='the candidate: a revision, or "worktree" (default)'
    )
    _target_options(verb)
    verb.add_argument(
        "--out", type=Path, metavar="DIR", help="also copy the artifacts there, to carry elsewhere"
    )
    _json_option(verb)


def _target_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--arch", default="all", help=f"{', '.join(ARCHITECTURES)}, several with commas, or all (default)"
    )
    verb.add_argument("--backend", default="all", help="host, cuda or all (default)")


def _json_option(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the result there as JSON too")


def _build(options: argparse.Namespace) -> int:
    side = builds.candidate(options.rev, _targets(options, options.variant), source=options.source)
    return _finish(side, options)


def _base(options: argparse.Namespace) -> int:
    candidate = builds.identify(options.rev)
    side = builds.base(options.base, _targets(options, "release"), of=candidate)
    if side.missing is not None:
        print(f"no base: {side.missing[0]}: {side.missing[1]}", file=sys.stderr)
    return _finish(side, options)


def _doctor(options: argparse.Namespace) -> int:
    checks = doctor.checks()
    print(doctor.table(checks))
    _write(options.json, [doctor.to_json(check) for check in checks])
    return EXIT_OK if doctor.can_measure(checks) else EXIT_UNKNOWN


def _list(options: argparse.Namespace) -> int:
    entries = shelf.entries()
    print(shelf.table(entries))
    _write(options.json, [shelf.to_json(entry) for entry in entries])
    return EXIT_OK if all(entry.problem is None for entry in entries) else EXIT_UNKNOWN


def _clean(options: argparse.Namespace) -> int:
    if options.all == bool(options.digest):
        print("usage: name digests, or pass --all", file=sys.stderr)
        return EXIT_USAGE
    removed = shelf.clean(options.digest, everything=options.all)
    for path in removed:
        print(f"deleted {path}")
    _write(options.json, [str(path) for path in removed])
    return EXIT_OK


VERBS = {"build": _build, "base": _base, "doctor": _doctor, "list": _list, "clean": _clean}


def _targets(options: argparse.Namespace, variant: str) -> Targets:
    return Targets(
        backends=_choice(options.backend, BACKENDS, "--backend"),
        architectures=_choice(options.arch, ARCHITECTURES, "--arch"),
        variant=variant,
    )


def _choice(text: str, known: tuple[str, ...], option: str) -> tuple[str, ...]:
    names = known if text == "all" else tuple(text.split(","))
    if not set(names) <= set(known):
        raise ArtifactsError("usage", f"{option} {text}: choose from {', '.join(known)}, all")
    return names


def _finish(side: Side, options: argparse.Namespace) -> int:
    for failure in side.failures:
        print(f"{failure.backend} {failure.arch}: {failure.text}", file=sys.stderr)
    if side.dirty:
        print(f"dirty: {', '.join(side.dirty[:5])}{' …' if len(side.dirty) > 5 else ''}: never admitted")
    if options.out is not None:
        sides.copy_set(side, options.out)
        print(f"copied to {options.out}")
    _write(options.json, sides.to_json(side))
    return EXIT_ERROR if side.failures else EXIT_UNKNOWN if side.missing else EXIT_OK


def _prepare(path: Path | None) -> None:
    """Delete an earlier run's result; what is none of ours is never written over."""
    if path is None:
        return
    if os.path.lexists(path) and not _is_result(path):
        raise ArtifactsError("usage", f"--json {path} is no result of an earlier run: choose another path")
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)


def _is_result(path: Path) -> bool:
    """Whether a file holds nothing, or what a verb of this command line writes as JSON."""
    if not path.is_file():
        return False
    try:
        value = json.loads(path.read_bytes() or b"[]")
    except (OSError, ValueError, RecursionError):
        return False
    if isinstance(value, dict):
        return {"schema", "origin", "artifacts"} <= value.keys()
    return isinstance(value, list) and all(map(_is_item, value))


def _is_item(value: object) -> bool:
    """An artifact that was removed, a check, or a stored artifact."""
    if isinstance(value, str):
        return ARTIFACT.search(value) is not None
    return isinstance(value, dict) and (
        {"ok", "needed_for"} <= value.keys() or {"problem", "directory"} <= value.keys()
    )


def _write(path: Path | None, value: Any) -> None:
    if path is not None:
        path.write_text(json.dumps(value, indent=1) + "\n")
