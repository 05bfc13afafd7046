"""Command line: `python -m evidence verdict | report | list | pack | import | explain`."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evidence import (
    detail,
    ending,
    instrument,
    pack,
    places,
    policy,
    question,
    reasons,
    report,
    store,
    verdict,
)
from evidence.ending import EXIT_CODES
from evidence.pack import PackError
from evidence.question import Question
from evidence.record import Reason, RecordError, as_json
from evidence.store import Loaded
from evidence.verdict import Verdict

EXIT_OK, EXIT_USAGE, EXIT_UNKNOWN, EXIT_ERROR = (
    0,
    EXIT_CODES["usage"],
    EXIT_CODES["unknown"],
    EXIT_CODES["error"],
)


def parser() -> argparse.ArgumentParser:
    """The arguments of `python -m evidence`."""
    top = argparse.ArgumentParser(
        prog="python -m evidence", description="Records, and the verdict over them."
    )
    verbs = top.add_subparsers(dest="verb", required=True)
    _verdict_options(
        _verb(verbs, "verdict", "hold the records against the policy; the last line is the verdict")
    )
    report_verb = _verb(verbs, "report", "print the records as one table")
    report_verb.add_argument("--markdown", type=Path, metavar="PATH", help="write it as Markdown too")
    list_verb = _verb(verbs, "list", "name every record file, and every one that is unreadable")
    pack_verb = _verb(verbs, "pack", "write records into one file, to carry elsewhere")
    pack_verb.add_argument("out", type=Path, metavar="OUT", help="a new .zip")
    for verb in (report_verb, list_verb, pack_verb):
        verb.add_argument("--run", metavar="ID", help="only records of this run")
        verb.add_argument("--kind", help="only records of this kind")
    import_verb = _verb(verbs, "import", "take records from packs; names what it refuses")
    import_verb.add_argument("files", type=Path, nargs="+", metavar="FILE")
    explain = _verb(verbs, "explain", "what a reason code means, and what to do")
    explain.add_argument("code", nargs="?", metavar="CODE", help="without one, all are listed")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE
    trouble = ending.prepare(options.json)
    if trouble is not None:
        print(f"usage: {trouble}", file=sys.stderr)
        return EXIT_USAGE
    try:
        code = int(VERBS[options.verb](options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except (OSError, RecordError, PackError) as error:
        return _failed(options, str(error))
    except Exception as error:
        return _failed(options, f"{type(error).__name__}: {error}; traceback in {_kept_traceback()}")


def _failed(options: argparse.Namespace, text: str) -> int:
    print(f"machinery: {text}", file=sys.stderr)
    if options.verb == "verdict":
        print(f"verdict: unknown (machinery: {' '.join(text.split())})")
    return EXIT_ERROR


def _kept_traceback() -> Path:
    """Write the traceback of what was unforeseen, a bug of ours, to a log."""
    log = places.home() / "logs" / f"evidence-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(traceback.format_exc())
    return log


def _verb(verbs: Any, name: str, text: str) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the result there as JSON too")
    verb.add_argument("--records", type=Path, metavar="DIR", help="default: .kernelgate/records")
    return verb


def _verdict_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--candidate", type=Path, required=True, metavar="JSON", help="of artifacts build --json"
    )
    verb.add_argument("--base", type=Path, required=True, metavar="JSON", help="of artifacts base --json")
    verb.add_argument(
        "--run", metavar="ID", default=os.environ.get(places.RUN_VARIABLE),
        help=f"host evidence must be of this run; default ${places.RUN_VARIABLE}, else any",
    )  # fmt: skip
    verb.add_argument(
        "--inputs", metavar="HASH", help="the fixtures' manifest hash; default: of this checkout"
    )


def _verdict(options: argparse.Namespace) -> int:
    asked = Question(
        candidate=question.read_side(options.candidate),
        base=question.read_side(options.base),
        inputs=options.inputs or places.inputs_hash(),
        instruments={entry.kind: instrument.of(entry.kind).digest for entry in policy.POLICY},
        run_id=options.run,
    )
    loaded = store.load(options.records)
    decided = verdict.decide(asked, loaded.records, unreadable=[item.why for item in loaded.unreadable])
    ending.write(options.json, _verdict_json(decided))
    print(report.verdict_table(decided))
    if asked.base.missing is None:
        print(f"base: {asked.base.origin}" + (f", {asked.base.revision[:12]}" if asked.base.revision else ""))
    for note in decided.notes:
        print(f"note: {note}")
    if decided.word != verdict.ADMITTED:
        for reason in decided.reasons:
            print(f"{reason.code}: {reason.text}")
    for line in detail.of_failures(decided, asked.candidate, loaded.records):
        print(line)
    print(decided.line(), flush=True)
    return decided.exit_code


def _report(options: argparse.Namespace) -> int:
    trouble = ending.prepare(options.markdown, option="--markdown", is_result=report.is_report)
    if trouble is not None:
        print(f"usage: {trouble}", file=sys.stderr)
        return EXIT_USAGE
    loaded = _chosen(options)
    print(report.terminal(loaded.records) if loaded.records else "no records")
    if options.markdown is not None:
        options.markdown.write_text(report.markdown(loaded.records, loaded.unreadable))
    ending.write(options.json, [as_json(record) for record in loaded.records])
    return _named(loaded)


def _list(options: argparse.Namespace) -> int:
    loaded = _chosen(options)
    for record in loaded.records:
        print(f"{store.file_name(record)}  {record.outcome}")
    ending.write(options.json, [store.file_name(record) for record in loaded.records])
    return _named(loaded)


def _pack(options: argparse.Namespace) -> int:
    loaded = _chosen(options)
    if not loaded.records:
        print("no records to pack", file=sys.stderr)
        return EXIT_UNKNOWN
    pack.write(loaded.records, options.out)
    print(f"{len(loaded.records)} records in {options.out}")
    ending.write(options.json, [record.id for record in loaded.records])
    return _named(loaded)


def _import(options: argparse.Namespace) -> int:
    done = [pack.read(path, options.records) for path in options.files]
    refused = [pair for one in done for pair in one.refused]
    for name, why in refused:
        print(f"refused {_printable(name)}: {why}", file=sys.stderr)
    added = [str(path) for one in done for path in one.added]
    known = [name for one in done for name in one.known]
    print(f"{len(added)} added, {len(known)} known already, {len(refused)} refused")
    ending.write(options.json, {"added": added, "known": known, "refused": refused})
    return EXIT_UNKNOWN if refused else EXIT_OK


def _explain(options: argparse.Namespace) -> int:
    wanted = sorted(reasons.CODES) if options.code is None else [options.code]
    found = {code: reasons.explain(code) for code in wanted}
    for code, entry in found.items():
        print(
            f"{code}: {entry.meaning} {entry.advice}"
            if entry
            else f"{code}: no such code; explain alone lists all"
        )
    ending.write(options.json, {code: asdict(entry) for code, entry in found.items() if entry is not None})
    return EXIT_USAGE if None in found.values() else EXIT_OK


VERBS = {
    "verdict": _verdict, "report": _report, "list": _list,
    "pack": _pack, "import": _import, "explain": _explain,
}  # fmt: skip


def _chosen(options: argparse.Namespace) -> Loaded:
    loaded = store.load(options.records)
    kept = [r for r in loaded.records if options.run in (None, r.run_id) and options.kind in (None, r.kind)]
    return Loaded(records=tuple(kept), unreadable=loaded.unreadable)


def _printable(name: str) -> str:
    # Names in a pack are the sender's: they must not drive the terminal.
    return name.encode("unicode_escape", "backslashreplace").decode()


def _named(loaded: Loaded) -> int:
    for item in loaded.unreadable:
        print(f"unreadable: {item.why}", file=sys.stderr)
    return EXIT_UNKNOWN if loaded.unreadable else EXIT_OK


def _verdict_json(decided: Verdict) -> dict[str, Any]:
    return {
        "schema": 1,
        "verdict": decided.word,
        "scope": decided.scope,
        "line": decided.line(),
        "exit_code": decided.exit_code,
        "reasons": [_reason_json(reason) for reason in decided.reasons],
        "notes": list(decided.notes),
        "findings": [
            {
                "requirement": f.requirement.name,
                "state": f.state,
                "reason": _reason_json(f.reason),
                "records": list(f.records),
                "stale": list(f.stale),
            }
            for f in decided.findings
        ],
    }


def _reason_json(reason: Reason) -> dict[str, str]:
    return {"code": reason.code, "text": reason.text}
