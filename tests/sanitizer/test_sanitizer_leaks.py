"""A leak is laid to its kind of call; growth that ends is none; without planted leaks nothing passes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sanitizer import cli, growth, judge, layouts, leakcheck, leaks
from sanitizer.batch import Attempt
from sanitizer.growth import CALLS, Growth
from sanitizer.marks import Marks
from sanitizer.process import Ended

Careless = Callable[..., Path]
LEAK = "kept 80000 bytes of heap memory, 80 a call, after 1000 calls"


def check(*arguments: str, cases: str) -> int:
    return cli.main(["leakcheck", "--backend", "host", "--cases", cases, *arguments])


@pytest.mark.parametrize("flags", [(), ("-fsanitize=address", "-g")])
def test_a_leaking_kernel_is_rejected(
    careless: Careless, flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    library = careless(*flags, "-DLEAKED=100")
    code = check("--library", str(library), "--json", str(path), cases="calls-3x64")
    assert code == 1 and "memory-error: 1 finding: kept 1" in capsys.readouterr().out
    (found,) = json.loads(path.read_text())["findings"]
    assert (found["case"], found["kind"]) == ("leak:calls-3x64", "leak") and " a call, after 1000" in found[
        "text"
    ]


@pytest.mark.parametrize("flags", [(), ("-fsanitize=address", "-g")])
def test_one_that_keeps_nothing_is_admitted(careless: Careless, flags: tuple[str, ...], home: Path) -> None:
    assert check("--library", str(careless(*flags)), cases="calls-3x64,own-output-3x64,threads-3x64") == 0
    (record,) = [json.loads(path.read_text()) for path in (home / "records").glob("*.json")]
    assert record["kind"] == "leakcheck" and record["outcome"] == "pass"
    assert "leak:calls-3x64: heap" in record["results"]["signs"][0]


def test_a_kernel_that_takes_everything_has_a_wrong_outcome(
    careless: Careless, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("--library", str(careless()), cases="refused-3x64") == 1
    assert "wrong-outcome: leak:refused-3x64: RuntimeError" in capsys.readouterr().out


def test_unknown_cases_are_refused(careless: Careless, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--library", str(careless()), cases="page-16-6x256") == 2
    assert (
        "leakcheck has no case leak:page-16-6x256: give all, or some of calls-6x256"
        in capsys.readouterr().out
    )


def rising(*steps: int) -> dict[str, growth.Meter]:
    """A meter that has grown by so much at the end of each round."""
    values: Iterator[int] = iter([value for step in steps for value in (0, step)])
    return {"heap": lambda: next(values)}


def test_only_growth_that_repeats_is_a_leak() -> None:
    calls: list[int] = []
    limit = growth.LIMITS_BYTES["heap"]
    quiet = growth.growth(lambda: calls.append(1), rising(limit + 9, limit - 1))
    assert quiet.complaint is None and len(calls) == growth.WARM_UP_CALLS + growth.FEWEST_ROUNDS * CALLS
    filling = growth.growth(lambda: None, rising(*[limit * 2] * 6, 7, 7, 7, 7))
    assert filling.bytes == {"heap": 7} and filling.complaint is None and len(filling.rounds) == growth.ROUNDS
    steady = growth.growth(lambda: None, rising(limit + 7, limit, *[limit * 2] * (growth.ROUNDS - 2)))
    assert steady.bytes == {"heap": limit} and steady.text == f"heap +{limit}"
    assert steady.complaint == f"kept {limit} bytes of heap memory, 16 a call, after 1000 calls"
    assert Growth(rounds=[{"device": 1 << 20}]).complaint is None
    assert Growth(rounds=[{"device": 2 << 20}]).complaint is not None


def every(calls: int, count: int, meters: dict[str, int]) -> growth.Call:
    """A call that keeps so much every so many times."""
    done: list[int] = []

    def call() -> None:
        done.append(1)
        meters["heap"] += 0 if len(done) % calls else count

    return call


@pytest.mark.parametrize(
    ("calls", "count", "seen"),
    [
        (1, 16, True),
        (1, 15, False),
        (1500, 1 << 20, True),
        (1500, 10_000, False),
        (2000, 32_768, True),
        (9000, 1 << 20, False),
    ],
)
def test_rare_jumps_are_seen_where_they_add_up(calls: int, count: int, seen: bool) -> None:
    kept = {"heap": 0}
    found = growth.growth(every(calls, count, kept), {"heap": lambda: kept["heap"]})
    assert (found.complaint is not None) == seen
    if calls > 1 and seen:
        assert "bytes of heap memory by jumps, after 10000 calls" in str(found.complaint)


def test_every_layout_is_called_and_has_the_property_it_is_named_for() -> None:
    names = leaks.names("host")
    for layout in layouts.LAYOUTS:
        assert f"leak:{layouts.named('calls', layout)}-3x64" in names
        assert layouts.split(layouts.named("calls", layout)) == ("calls", layout)
    assert layouts.split("own-output") == ("own-output", "")
    assert "leak:replays-odd-6x256" in leaks.names("cuda") and "leak:replays-6x256" not in names
    made = {name: layout.made(3, 64, "cpu") for name, layout in layouts.LAYOUTS.items()}
    for name, ((q, k, v, _, lens), out) in made.items():
        odd = name == "odd"
        assert len(q) == {"few": 2, "many": 8, "odd": 8}.get(name, 3) and q.shape == out.shape
        assert (q.data_ptr() % 16 == out.data_ptr() % 16 == 0) == (name != "misaligned" and not odd)
        assert (k.stride(1) == v.stride(1) == 64) == (name != "narrow" and not odd)
        assert (lens[0] == 0 and lens[-1] > 1 << 19) == (name == "idle" or odd)


@pytest.mark.parametrize(
    ("when", "caught", "clean"),
    [
        ("reinterpret_cast<uintptr_t>(q.data_ptr()) % 16 != 0", "calls-misaligned-3x64", "calls-3x64"),
        ("q.size(0) == 8", "calls-many-3x64", "calls-few-3x64"),
        ("k.stride(1) % 16 != 0", "partials-odd-3x64", "partials-3x64"),
    ],
)
def test_a_leak_on_one_path_is_laid_to_its_layout(
    careless: Careless, when: str, caught: str, clean: str, capsys: pytest.CaptureFixture[str]
) -> None:
    library = careless("-DLEAKED=4096", f"-DLEAK_IF={when}")
    assert check("--library", str(library), cases=clean) == 0
    assert check("--library", str(library), cases=f"{clean},{caught}") == 1
    line = capsys.readouterr().out.splitlines()[-1]
    assert "rejected (memory-error: 1 finding: kept " in line and line.endswith(f" in leak:{caught})")


@pytest.mark.parametrize("name", leaks.controls("host", checked=False))
def test_planted_leaks_are_measured_here(name: str) -> None:
    found = growth.growth(leaks.planted(name), growth.meters("host"))
    kind = name.removeprefix(leaks.CONTROL_PREFIX)
    assert found.bytes[kind] >= leaks.PLANTED_BYTES[kind] * CALLS * 0.9 and found.complaint is not None


CONTROLS = leaks.controls("cuda", checked=False)
CASES = ("leak:calls-3x64",)


def verdict(marks: Marks, status: int | None = 0) -> judge.Judgement:
    attempt = leakcheck.attempt((*CASES, *CONTROLS), Ended(status=status, output=""), marks)
    attempts: tuple[Attempt, ...] = (attempt,)
    return judge.judge(CASES, CONTROLS, attempts, scope="x")


def test_a_run_is_believed_only_with_every_planted_leak_found_and_a_clean_end() -> None:
    found = dict.fromkeys(CONTROLS, LEAK)
    whole = Marks(ended={CASES[0]: None, **found}, finished=True)
    assert verdict(whole).word == "admitted" and len(CONTROLS) == 3
    for blind in CONTROLS:
        seen = Marks(ended={**whole.ended, blind: None}, finished=True)
        assert [r.code for r in verdict(seen).reasons] == ["control-not-found"]
    leaking = Marks(ended={**whole.ended, CASES[0]: LEAK}, finished=True)
    assert verdict(leaking).word == "rejected" and verdict(leaking).findings[0].text == LEAK
    for marks, status, code in (
        (whole, None, "time-limit"),
        (whole, -11, "signs-disagree"),
        (Marks(ended=whole.ended), 0, "signs-disagree"),
        (Marks(trouble="no"), 72, "not-started"),
    ):
        judged = verdict(marks, status)
        assert judged.word == "unknown" and judged.reasons[0].code == code
