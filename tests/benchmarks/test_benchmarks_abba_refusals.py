"""What `abba` refuses: options out of range, sides that exit, kernels that leave outputs unwritten."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from benchmarks import cli
from benchmarks.abba import workload
from benchmarks.abba.guards import AlarmError
from benchmarks.abba.sampling import BASE, CANDIDATE
from benchmarks.abba.subjects import Contender
from benchmarks.latency.problem import Shape
from evidence import store
from evidence.reasons import CODES
from evidence.record import Subject

MODULE = """
def op(q, k_cache, v_cache, block_table, row_lens, *, softmax_scale, k_scale, v_scale, out):
    out.copy_(q)

def leaves(*arguments, out, **options):
    raise SystemExit(0)

def leaves_later(q, *arguments, out, calls=[], **options):
    calls.append(1)
    if len(calls) > 5:
        raise SystemExit(0)
    out.copy_(q)

def idle(*arguments, out, **options):
    pass
"""
SHAPE = Shape(rows=2, heads=3, head_dim=64, page=16, context=32)
Run = Callable[..., tuple[int, list[str]]]
Write = Callable[[torch.Tensor, torch.Tensor], object]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs `abba` on callables of a small module; returns the exit code and the lines."""
    (tmp_path / "refused_sides.py").write_text(MODULE)
    (tmp_path / "exits_at_import.py").write_text("raise SystemExit(0)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    monkeypatch.delitem(sys.modules, "refused_sides", raising=False)
    threads = torch.get_num_threads()
    sides = ["--base", "refused_sides:op", "--candidate", "refused_sides:op", "--backend", "host"]

    def one(*options: str) -> tuple[int, list[str]]:
        code = cli.main(["abba", *sides, "--contexts", "64", "--budget", "100ms", *options])
        return code, capsys.readouterr().out.splitlines()

    yield one
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--alpha", "2 1 0 nan -0.1 inf"),
        ("--margin", "-1 nan 0 1"),
        ("--reject-above", "nan inf -0.1 much"),
        ("--resolution", "0 nan inf -1"),
        ("--budget", "0 0s 0.0ms"),
        ("--heads", "0 -1 x"),
        ("--arch", "sm_99"),
        ("--plot", "forest.txt forest"),
    ],
)
def test_options_out_of_range_are_usage_errors_even_of_identical_code(
    run: Run, option: str, values: str
) -> None:
    assert run()[0] == 0
    codes = {value: run(f"{option}={value}")[0] for value in values.split()}
    assert set(codes.values()) == {2}, codes


def test_identical_code_leaves_nothing_to_plot(run: Run, tmp_path: Path) -> None:
    code, lines = run("--plot", str(tmp_path / "forest.SVG"))
    assert code == 0 and not (tmp_path / "forest.SVG").exists()
    assert lines[0].startswith("no plot: both sides are the same code")
    (tmp_path / "mine.svg").write_text("<svg/>")
    code, lines = run("--plot", str(tmp_path / "mine.svg"))
    assert code == 2 and "usage: --plot" in lines[-1] and (tmp_path / "mine.svg").read_text() == "<svg/>"


def test_every_end_leaves_a_result_and_no_other_file_is_lost(run: Run, tmp_path: Path) -> None:
    path, other = tmp_path / "r.json", tmp_path / "pyproject.toml"
    other.write_text("mine")
    for extra, outcome in ((), "pass"), (("--candidate", "refused_sides:leaves"), "unknown"):
        assert run("--json", str(path), *extra)[0] in (0, 4)
        assert json.loads(path.read_text())["outcome"] == outcome
    code, lines = run("--json", str(other))
    assert code == 2 and "usage: --json" in lines[-1] and other.read_text() == "mine"


@pytest.mark.parametrize(
    ("side", "words"),
    [
        ("refused_sides:leaves", "the candidate raised: SystemExit(0)"),
        ("refused_sides:leaves_later", "the candidate raised: SystemExit(0)"),
        ("exits_at_import:op", "no-target: exits_at_import:op: importing it raised SystemExit(0)"),
    ],
)
def test_a_side_that_exits_is_unknown_by_name(run: Run, side: str, words: str) -> None:
    code, lines = run("--candidate", side)
    assert code == 4
    assert lines[-1].startswith("verdict: unknown (") and words in lines[-1]


@pytest.mark.parametrize("verb", sorted(cli.VERBS))
def test_no_verb_exits_in_silence(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def leave(_options: object) -> int:
        raise SystemExit(0)

    class Parsed:
        def parse_args(self, _arguments: object) -> object:
            return type("Options", (), {"verb": verb})

    monkeypatch.setattr(cli, "parser", Parsed)
    monkeypatch.setitem(cli.VERBS, verb, leave)
    assert cli.main([verb]) == 5
    assert capsys.readouterr().out.splitlines()[-1] == "verdict: unknown (machinery: SystemExit: 0)"


def test_a_candidate_that_writes_nothing_is_rejected_and_recorded(run: Run) -> None:
    code, lines = run("--candidate", "refused_sides:idle")
    assert code == 4
    assert "finds rejected (unwritten-output: 64 q5 page 848: an eager call of the candidate" in lines[-1]
    (kept,) = store.load().records
    assert kept.results["comparisons"][0]["rejects"] is True


def truth(side: str, write: Write) -> torch.Tensor:
    """The bits of a side's eager calls; the other side is sound."""
    subject = Subject(backend="host", arch="sm_70", sha256="a")

    def contender(name: str) -> Contender:
        def attend(q: torch.Tensor, *_: object, out: torch.Tensor, **_scales: float) -> None:
            write(q, out) if name == side else out.copy_(q)

        return Contender(label=name, subject=subject, attend=attend)

    sides = {name: contender(name) for name in (BASE, CANDIDATE)}
    return workload.make(sides, SHAPE, copies=2, device=torch.device("cpu")).truth[side]


@pytest.mark.parametrize(
    ("side", "code", "rejects"), [(CANDIDATE, "unwritten-output", True), (BASE, "base-unwritten", False)]
)
def test_a_part_that_is_left_unwritten_is_found(side: str, code: str, rejects: bool) -> None:
    with pytest.raises(AlarmError, match=r"leaves 2 of 768 output elements") as caught:
        truth(side, lambda q, out: out.view(-1)[1:].copy_(q.reshape(-1)[1:]))
    assert (caught.value.code, caught.value.rejects) == (code, rejects)
    assert code in CODES


@pytest.mark.parametrize("poison", [workload.POISON, workload.OTHER_POISON])
def test_what_is_written_may_look_like_a_poison(poison: int) -> None:
    assert (truth(CANDIDATE, lambda _q, out: out.view(torch.int16).fill_(poison)) == poison).all()
