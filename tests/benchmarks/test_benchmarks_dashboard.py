"""The dashboard: what is published, what is refused, and that a browser draws every suite offline."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import browser
import numpy as np
import pytest
from history_repo import MACHINE, ROOT, Project
from PIL import Image

from benchmarks import cli
from benchmarks.history import dashboard, results, runner, web
from benchmarks.history.commits import Commit
from benchmarks.history.runner import Desk

NEEDS_CHROMIUM = pytest.mark.skipif(
    browser.executable() is None, reason="Chromium is not installed: apt-get install chromium"
)
MOST_BYTES = 150_000
FIGURES = ("figures.Figures.track_time", "figures.Figures.track_count")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path]:
    """A project of three commits with results of each, without dates, as from a tree without git."""
    folder = tmp_path_factory.mktemp("dashboard")
    project, kept = Project(folder / "project"), folder / "results"
    kept.mkdir()
    (folder / "side.json").write_text("{}")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'kernels'}")
    for text in ("one", "two", "three"):
        desk = Desk(root=project.root, work=folder, results=kept)
        assert (
            runner.measure(desk, Commit(name=project.commit(text)), folder / "side.json", MACHINE, None) == 0
        )
    patch.undo()
    return project, kept


@pytest.fixture
def publish(
    measured: tuple[Project, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):  # type: ignore[no-untyped-def]
    """Publishes to a folder and returns exit status and output."""
    project, kept = measured
    monkeypatch.setattr(dashboard.places, "root", lambda: project.root)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'kernels'}")

    def run(out: Path, folder: Path = kept) -> tuple[int, str]:
        code = cli.main(["dashboard", "--out", str(out), "--results", str(folder)])
        return code, capsys.readouterr().out

    return run


@NEEDS_CHROMIUM
def test_a_browser_draws_every_suite(publish, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, text = publish(tmp_path / "out")
    assert code == 0 and text.splitlines()[-1].startswith(
        "verdict: admitted (published: 2 benchmarks, 3 commits"
    )
    assert shutil.which("npm") is None or "they need no internet" in text
    with browser.serve(tmp_path / "out") as address:
        grid = browser.document(address)
        for name in FIGURES:
            assert f"#{name}" in grid or name.split(".", 1)[1] in grid
            page = browser.document(f"{address}#{name}")
            assert "flot-base" in page and "flot-overlay" in page, f"{name}: no canvas"
            assert re.search(r'class="[^"]*(tickLabel|flot-tick-label)[^"]*"[^>]*>\d', page), (
                f"{name}: no axis"
            )
            assert "context-64" in page and "context-128" in page, f"{name}: not every curve is named"
            browser.picture(f"{address}#{name}", tmp_path / "page.png")
            assert drawn_pixels(tmp_path / "page.png") > 300, f"{name}: nothing is drawn"
            assert (tmp_path / "page.png").stat().st_size <= MOST_BYTES
        for page in (grid, browser.document(f"{address}#regressions")):
            assert "could not be loaded" not in page and 'js_load_failure()"></script>' in page
    assert "canvas" in grid


def drawn_pixels(path: Path) -> int:
    """Pixels of the curves' saturated colours, in the plot's part of the page."""
    plot = np.asarray(Image.open(path).convert("RGB")).astype(int)[100:, 260:]
    return int((plot.max(axis=2) - plot.min(axis=2) > 80).sum())


@NEEDS_CHROMIUM
def test_a_page_without_results_draws_nothing(publish, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    publish(tmp_path / "out")
    for path in (tmp_path / "out" / "graphs").rglob(f"{FIGURES[0]}.json"):
        path.write_text("[]")
    with browser.serve(tmp_path / "out") as address:
        browser.picture(f"{address}#{FIGURES[0]}", tmp_path / "page.png")
    assert drawn_pixels(tmp_path / "page.png") < 300


def test_dates_come_from_git_and_lost_commits_are_left_out_by_name(  # type: ignore[no-untyped-def]
    publish, measured: tuple[Project, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(measured[1], folder)
    first = next(results.files(folder))
    gone = results.read(first).commit
    first.write_text(first.read_text().replace(gone, "d" * 40))
    code, text = publish(tmp_path / "out", folder)
    assert code == 0 and "2 commits" in text.splitlines()[-1]
    assert "results kept but not drawn: dddddddddddd" in text and first.exists()
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    assert all(date > 1e12 for date in index["revision_to_date"].values())


def test_what_is_no_dashboard_is_never_emptied(publish, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "thesis.txt").write_text("years of work")
    code, text = publish(tmp_path)
    assert code == 4 and text.splitlines()[-1].startswith("verdict: unknown (not-empty: ")
    assert (tmp_path / "thesis.txt").exists()


def test_an_empty_history_is_unknown(publish, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, text = publish(tmp_path / "out", tmp_path / "nothing")
    assert code == 4 and "no-results" in text.splitlines()[-1]


def test_a_damaged_result_is_named_and_nothing_published(  # type: ignore[no-untyped-def]
    publish, measured: tuple[Project, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(measured[1], folder)
    next(results.files(folder)).write_text("{")
    code, text = publish(tmp_path / "out", folder)
    assert code == 4 and "results-unreadable" in text.splitlines()[-1]


def test_without_npm_the_pages_stay_as_asv_made_them(  # type: ignore[no-untyped-def]
    publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web.shutil, "which", lambda _name: None)
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    code, text = publish(tmp_path / "out")
    assert code == 0 and "they need the internet (npm is not installed)" in text.splitlines()[-1]
    assert "https://" in (tmp_path / "out" / "index.html").read_text()
