"""`python -m benchmarks abba` from options to verdict line, record, JSON and plot."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from simulated_machine import SimulatedMachine

from artifacts import ArtifactsError
from benchmarks import cli
from benchmarks.abba import command, subjects, workload
from benchmarks.abba.options import numbers, seconds
from benchmarks.abba.sampling import BASE, CANDIDATE
from benchmarks.latency.problem import Shape
from benchmarks.peers import catalogue
from evidence import store
from grouped_attention.build import default_store

MODULE = """
def base(q, k_cache, v_cache, block_table, row_lens, *, softmax_scale, k_scale, v_scale, out):
    out.copy_(q)

def other(q, k_cache, v_cache, block_table, row_lens, *, softmax_scale, k_scale, v_scale, out):
    out.copy_(q)

def broken(*arguments, **options):
    raise RuntimeError("no such luck")

def lazy(q, k_cache, v_cache, block_table, row_lens, *, softmax_scale, k_scale, v_scale, out, calls=[]):
    calls.append(1)
    if len(calls) <= 4:  # two eager calls for each of two copies
        out.copy_(q)
"""
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `abba` on callables of a small module, in a home of its own."""
    (tmp_path / "abba_sides.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("GROUPED_ATTENTION_STORE", str(default_store()))
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    monkeypatch.delitem(sys.modules, "abba_sides", raising=False)
    threads = torch.get_num_threads()
    sides = ["--base", "abba_sides:base", "--candidate", "abba_sides:other", "--backend", "host"]
    yield lambda *options: cli.main(["abba", *sides, "--contexts", "64", *options])
    torch.set_num_threads(threads)


def simulate(monkeypatch: pytest.MonkeyPatch, **machine: float) -> None:
    """Puts a simulated machine where the GPU would be; what is said of a host's clock is left out."""

    def bench(_sides: object, shape: Shape, _source: object, *, hot: bool) -> SimulatedMachine:
        return SimulatedMachine(seed=shape.context + hot, **machine)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "bench", bench)
    conclude = command.outcome.conclude
    monkeypatch.setattr(command.outcome, "conclude", lambda results, **_: conclude(results, is_host=False))
    ticks = iter(range(10**9))
    monkeypatch.setattr(command.time, "perf_counter", lambda: 1e-6 * next(ticks))


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_a_run_on_the_host_tests_the_instrument_alone(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--budget", "200ms", "--json", str(tmp_path / "r.json")) == 4
    assert last_line(capsys).startswith("verdict: unknown (host-clock: a test of the instrument")
    (kept,) = store.load().records
    assert (kept.kind, kept.outcome) == ("abba", "unknown")
    assert json.loads((tmp_path / "r.json").read_text())["id"] == kept.id


def test_the_record_holds_every_sample(run: Run) -> None:
    run("--budget", "200ms", "--seed", "5")
    (kept,) = store.load().records
    (comparison,) = kept.results["comparisons"]
    blocks = [b for one in comparison["rounds"] for pair in one["pairs"] for b in pair["blocks"]]
    assert all(b["order"] in ("ABBA", "BAAB") and len(b["us"]) == 4 for b in blocks)
    assert any(b.get("warm_up") for b in blocks) and any(one["pilot"] for one in comparison["rounds"])
    assert kept.selection["seed"] == 5 and kept.results["rule"]["alpha_each"] == 0.05
    assert comparison["design"]["kept_blocks"] >= 1
    assert set(comparison["variance"]["shares"]) == {"replay", "block", "instance"}


@pytest.mark.parametrize(
    ("ratio", "code", "word"),
    [(1.0, 0, "admitted (same"), (1.02, 1, "rejected (slower"), (0.98, 0, "admitted (no-slower")],
)
def test_verdicts_and_exit_codes(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ratio: float,
    code: int,
    word: str,
) -> None:
    simulate(monkeypatch, ratio=ratio)
    assert run("--contexts", "64,128", "--rows", "5,8", "--budget", "8s") == code
    text = capsys.readouterr().out
    assert text.splitlines()[-1].startswith(f"verdict: {word}")
    assert text.count("deviation of a block") == 4, "two contexts and two row counts are four comparisons"
    (kept,) = store.load().records
    assert kept.results["rule"]["alpha_each"] == pytest.approx(0.0125)


def test_a_noisy_machine_is_undecided(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from simulated_machine import Noise

    simulate(monkeypatch, noise=Noise(replay=0.1, instance=0.1))  # type: ignore[arg-type]
    assert run("--budget", "1s") == 3
    assert last_line(capsys).startswith("verdict: undecided (time-undecided: 1 of 1: 64 q5 page 848")


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_forest_plot_is_drawn(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffix: str
) -> None:
    pytest.importorskip("matplotlib")
    simulate(monkeypatch, ratio=1.02)
    path = tmp_path / f"forest.{suffix}"
    run("--budget", "1s", "--plot", str(path))
    assert path.read_bytes()[:5] in (b"<?xml", b"\x89PNG\r")


def test_without_matplotlib_the_reason_is_said(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(monkeypatch)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run("--budget", "1s", "--plot", str(tmp_path / "p.svg")) == 0
    assert "no plot: plotting needs matplotlib" in capsys.readouterr().out


def test_identical_code_is_not_timed_unless_asked_for(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--candidate", "abba_sides:base") == 0
    assert last_line(capsys).startswith("verdict: admitted (identical:")
    assert store.load().records == ()
    run("--candidate", "abba_sides:base", "--aa", "--budget", "100ms")
    assert "an A/A trial, which tests the instrument" in capsys.readouterr().out


def test_a_side_that_raises_is_unknown_and_recorded(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--candidate", "abba_sides:broken", "--budget", "100ms") == 4
    assert "(kernel-failed: 64 q5 page 848: the candidate raised: no such luck)" in last_line(capsys)
    assert len(store.load().records) == 1


def test_a_kernel_that_stops_writing_is_caught(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--candidate", "abba_sides:lazy", "--budget", "100ms") == 4
    assert "finds rejected (bits-differ: 64 q5 page 848: after a timed replay" in last_line(capsys)


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        ("--candidate", "abba_sides:missing", "no-target"),
        ("--candidate", "peer:nobody", "no-target"),
        ("--base", "no-such-revision", "bad-base"),
        ("--candidate", "no-such-revision", "bad-revision"),
    ],
)
def test_what_cannot_be_had_is_unknown_with_a_reason(
    run: Run, capsys: pytest.CaptureFixture[str], option: str, value: str, code: str
) -> None:
    assert run(option, value) == 4
    assert last_line(capsys).startswith(f"verdict: unknown ({code}:")


def test_cuda_without_a_gpu_is_unknown(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run("--backend", "cuda") == 4
    assert last_line(capsys).startswith("verdict: unknown (no-gpu:")


def test_a_dirty_tree_is_never_admitted() -> None:
    subject = subjects.Subject(backend="host", arch="sm_70", sha256="a", dirty=True)
    one = subjects.Contender(label="work tree", subject=subject, attend=print)
    sides = command.Sides(base=one, candidate=one, backend="host", arch="sm_70")
    assert command._identical(sides).word == "undecided"
    assert command._identical(sides).code == "dirty-tree"


def test_times_and_lists_of_numbers() -> None:
    assert [seconds(text) for text in ("10s", "500ms", "2m", "1.5")] == [10.0, 0.5, 120.0, 1.5]
    assert numbers("8192,65536") == (8192, 65536)
    for wrong, reader in (
        ("soon", seconds),
        ("s", seconds),
        ("1,,2", numbers),
        ("-1", numbers),
        ("0", numbers),
    ):
        with pytest.raises(argparse.ArgumentTypeError):
            reader(wrong)
    assert cli.main(["abba", "--contexts", "many"]) == 2


def test_a_peer_can_stand_on_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    echo = catalogue.Peer(what="prints", make=lambda: print)
    monkeypatch.setattr(catalogue, "PEERS", {"echo": echo})
    found = subjects.candidate("peer:echo", backend="host", arch="sm_70")
    assert found.label == "peer:echo" and found.attend is print
    with pytest.raises(ArtifactsError, match="there are: echo"):
        subjects.candidate("peer:nobody", backend="host", arch="sm_70")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("module:function", True),
        ("a.b:f", True),
        ("peer:torch-sdpa", True),
        ("HEAD~1", False),
        ("x.so", False),
    ],
)
def test_python_is_told_from_paths_and_revisions(spec: str, expected: bool) -> None:
    assert subjects.is_python(spec) is expected


def test_a_library_and_an_artifact_folder_are_compared(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import grouped_attention as ga

    library = ga.load(backend="host", arch="sm_70").library
    copied = tmp_path / "copy.so"
    copied.write_bytes(library.read_bytes())
    options = ("--base", str(library.parent), "--candidate", str(copied), "--aa", "--budget", "100ms")
    assert run(*options) == 4
    assert last_line(capsys).startswith("verdict: unknown (host-clock:")


def test_both_sides_get_the_same_inputs_and_their_own_truth() -> None:
    seen: dict[str, list[torch.Tensor]] = {BASE: [], CANDIDATE: []}

    def contender(side: str, value: float) -> subjects.Contender:
        def attend(q: torch.Tensor, *_: torch.Tensor, out: torch.Tensor, **_scales: float) -> None:
            seen[side].append(q)
            out.fill_(value)

        subject = subjects.Subject(backend="host", arch="sm_70", sha256=side)
        return subjects.Contender(label=side, subject=subject, attend=attend)

    sides = {BASE: contender(BASE, 1.0), CANDIDATE: contender(CANDIDATE, 2.0)}
    shape = Shape(rows=2, heads=6, head_dim=256, page=16, context=32)
    work = workload.make(sides, shape, copies=3, device=torch.device("cpu"))
    assert all(torch.equal(a, b) for a, b in zip(seen[BASE], seen[CANDIDATE], strict=True))
    assert len(seen[BASE]) == 6 and len({q.data_ptr() for q in seen[BASE]}) == 3
    for call in work.calls[BASE][0]:
        call()
    assert (int(work.wrong(BASE)), int(work.wrong(CANDIDATE))) == (0, work.outputs.numel())


def test_both_sides_of_a_pair_use_one_workspace_and_the_next_pair_another() -> None:
    used = [workload.placement(capture) for capture in range(2 * workload.PLACEMENTS + 2)]
    assert used[0::2] == used[1::2] == [*range(workload.PLACEMENTS), 0]


def test_workspaces_are_shared_where_they_are_alike() -> None:
    import grouped_attention as ga

    extensions = {side: ga.load(backend="host", arch="sm_70") for side in (BASE, CANDIDATE)}
    subject = subjects.Subject(backend="host", arch="sm_70", sha256="a")
    sides = {
        side: subjects.Contender(label=side, subject=subject, attend=e.grouped_e4m3_fp32, extension=e)
        for side, e in extensions.items()
    }
    shape = Shape(rows=2, heads=3, head_dim=64, page=16, context=32)
    work = workload.make(sides, shape, copies=1, device=torch.device("cpu"))
    used = {side: [calls[0].keywords["workspace"] for calls in work.calls[side]] for side in sides}  # type: ignore[attr-defined]
    assert all(one is other for one, other in zip(used[BASE], used[CANDIDATE], strict=True))
    assert len({space.acc.data_ptr() for space in used[BASE]}) == workload.PLACEMENTS
    small = extensions[BASE].workspace(workload.OP, heads=3, head_dim=64, device="cpu")
    large = extensions[BASE].workspace(workload.OP, heads=6, head_dim=256, device="cpu")
    assert not workload.exchangeable(small, large) and not workload.exchangeable(small, None)


def test_orders_differ_from_run_to_run() -> None:
    first, second = (cli.parser().parse_args(["abba"]).seed for _ in range(2))
    assert first != second
