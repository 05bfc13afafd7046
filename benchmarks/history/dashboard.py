"""`python -m benchmarks dashboard`: asv's web pages over the history, in a folder for any web server."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from artifacts import git, places
from artifacts.errors import ArtifactsError
from benchmarks.history import audit, commits, results, runner, web
from benchmarks.history.command import results_folder
from benchmarks.history.results import File, ResultsError
from benchmarks.history.runner import Desk
from evidence import ending
from evidence.ending import Verdict
from evidence.places import home

MARK = "info.json"  # asv writes it last: a folder that holds it is a dashboard, and may be replaced


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `dashboard`."""
    verb.add_argument("--out", type=Path, metavar="DIR", help="default: .kernelgate/history/html")
    verb.add_argument("--results", type=Path, metavar="DIR", help="default: .kernelgate/history/results")


def run(options: argparse.Namespace) -> int:
    """Publish, name what is not drawn, end with the verdict's line."""
    out = (options.out or home() / "history" / "html").absolute()
    folder = results_folder(options.results)
    try:
        complaints = audit.complaints(places.root(), folder)
        found = _publish(places.root(), folder, out)
    except (ArtifactsError, ResultsError) as error:
        code = error.code if isinstance(error, ArtifactsError) else "results-unreadable"
        complaints, found = [], Verdict(word="unknown", code=code, text=str(error))
    for line in complaints:
        print(line)
    return ending.end(found)


def _publish(root: Path, folder: Path, out: Path) -> Verdict:
    _check_target(root, folder, out)
    found, damaged = audit.load(folder)
    if damaged:
        return Verdict(word="unknown", code="results-unreadable", text=damaged[0])
    dates = commits.drawn(root)
    kept = [one for one in found if one.commit in dates]
    if not kept:
        return Verdict(word="unknown", code="no-results", text=f"{folder} holds no result of this history")
    with tempfile.TemporaryDirectory(prefix="kernelgate-dashboard-") as work:
        desk = Desk(root=root, work=Path(work), results=Path(work) / "results")
        _stage(desk, folder, kept, dates)
        changes = {"html_dir": str(out), "branches": [commits.branch(root)]}
        status = runner.call(desk, runner.configure(desk, changes), "publish", "--no-pull")
        said = desk.log.read_text(errors="replace").strip()
    if status != 0:
        print(said, flush=True)
        return Verdict(word="unknown", code="not-published", text=f"asv publish: exit status {status}")
    return _checked(out, kept, results.index(folder), _libraries(out))


def _libraries(out: Path) -> str:
    """Where the pages get their libraries from, in words."""
    try:
        web.localise(out)
    except web.WebError as error:
        return f"they need the internet ({error})"
    return "they need no internet"


def _check_target(root: Path, folder: Path, out: Path) -> None:
    """asv empties the folder that it writes to."""
    if not runner.is_installed():
        raise ArtifactsError("no-asv", runner.NO_ASV)
    if not git.is_repository(root):
        raise ArtifactsError("no-git", "graphs are drawn over git's history: take the results to a checkout")
    if not (folder / results.INDEX).exists():
        raise ArtifactsError("no-results", f"{folder} is empty: run the history session first")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).exists():
        raise ArtifactsError("not-empty", f"{out} holds something that is no dashboard: choose a new folder")


def _stage(desk: Desk, folder: Path, kept: Sequence[File], dates: dict[str, int]) -> None:
    """Copy what can be drawn. asv fails at a commit that git doesn't reach; a date may be unknown so far."""
    desk.results.mkdir()
    results.write(desk.results / results.INDEX, (folder / results.INDEX).read_bytes())
    for one in kept:
        place = desk.results / one.machine
        place.mkdir(exist_ok=True)
        results.write(place / results.MACHINE, (one.path.parent / results.MACHINE).read_bytes())
        value = json.loads(one.path.read_bytes()) | {"date": dates[one.commit]}
        results.write(place / one.path.name, json.dumps(value).encode())


def _checked(out: Path, kept: Sequence[File], index: dict[str, object], libraries: str) -> Verdict:
    """Every benchmark that has a number must have a graph."""
    wanted = [name for name in index if any(results.has_number(one, name) for one in kept)]
    lacking = [name for name in wanted if not _is_drawn(out, name)]
    if lacking:
        text = f"{len(lacking)} of {len(wanted)} benchmarks have no graph, first {lacking[0]}"
        return Verdict(word="unknown", code="not-published", text=text)
    machines = len({one.machine for one in kept})
    count = len({one.commit for one in kept})
    text = f"{len(wanted)} benchmarks, {count} commits, {machines} machines in {out}; {libraries}"
    return Verdict(word="admitted", code="published", text=text)


def _is_drawn(out: Path, name: str) -> bool:
    path = out / "graphs" / "summary" / f"{name}.json"
    return path.is_file() and bool(json.loads(path.read_bytes()))
