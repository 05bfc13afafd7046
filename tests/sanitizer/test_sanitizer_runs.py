"""Whatever a tool does but its work, the verdict is never a pass; and what it finds is laid to its case."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sanitizer import judge
from sanitizer.batch import Batch, Launch
from sanitizer.judge import Judgement

MakeLaunch = Callable[..., Launch]
CASES = ("a", "b", "c", "d")
CONTROLS = ("control:memcheck",)
# The control is found: its kernel's records, the summary, the exit status, and the case left open.
PLANTED = """
def many(text, times):
    head, rest = text.split("<record>", 1)
    records, tail = rest.rsplit("</record>", 1)
    return head + f"<record>{records}</record>" * times + tail


def planted():
    mark("begin", case="control:memcheck")
    xml.write_text(sample("mem_oob.xml", "kernelgate_control_memcheck"))
    log.write_text("========= ERROR SUMMARY: 2 errors\\n")
    sys.exit(99)

"""
SUMMARY = 'log.write_text("========= ERROR SUMMARY: 2 errors\\n")'
RECORDS = 'sample("mem_oob.xml", "kernelgate_control_memcheck")'
BEFORE_FIRST_CALL = "2 errors\\nTarget application terminated before first instrumented API call"
CRASH = "os.kill(os.getpid(), signal.SIGSEGV)"
GOOD = PLANTED + "clean(names[:-1]); planted()\n"


def verdict(launch: Launch, folder: Path, tool: str = "memcheck") -> Judgement:
    controls = (f"control:{tool}",)
    attempts = Batch(launch=launch, folder=folder).play((*CASES, *controls))
    return judge.judge(CASES, controls, attempts, scope="x")


def test_a_clean_run_with_its_control_found_is_admitted(fake: MakeLaunch, tmp_path: Path) -> None:
    found = verdict(fake(GOOD), tmp_path / "runs")
    assert found.word == "admitted" and len(found.signs) == 1 and found.controls == CONTROLS
    assert found.line == "verdict: admitted (memory-clean: x: 4 cases clean, 1 planted found)"


BLIND = {
    "reports nothing at all": ("clean(names); mark('finished')", "no-report"),
    "misses the control": (
        "clean(names); mark('finished'); xml.write_text(NOTHING);"
        "log.write_text('========= ERROR SUMMARY: 0 errors')",
        "control-not-found",
    ),
    "writes no summary": (GOOD.replace(SUMMARY, "pass"), "no-summary"),
    "counts none but records some": (GOOD.replace("2 errors", "0 errors"), "signs-disagree"),
    "counts more than it records": (GOOD.replace("2 errors", "3 errors"), "signs-disagree"),
    "counts one and records none": (
        GOOD.replace(RECORDS, "NOTHING").replace("2 errors", "1 error"),
        "signs-disagree",
    ),
    "exits 0 with records": (GOOD.replace("sys.exit(99)", "sys.exit(0)"), "signs-disagree"),
    "cuts its report off": (GOOD.replace(RECORDS, f"{RECORDS}[:900]"), "no-report"),
    "knows another kind": (
        GOOD.replace(RECORDS, f"{RECORDS}.replace('Precise', 'Leak')"),
        "unknown-kind",
    ),
    "stops printing at its limit": (
        GOOD.replace("2 errors", "1000 errors").replace(RECORDS, f"many({RECORDS}, 500)"),
        "print-limit",
    ),
    "crashes at once": (CRASH, "not-started"),
    "crashes in a case": (f"clean(names[:1]); mark('begin', case='b'); {CRASH}", "no-report"),
    "hangs": ("clean(names[:2]); mark('begin', case='c'); time.sleep(60)", "time-limit"),
    "finds no device": ("print('Error: no device'); sys.exit(255)", "no-gpu"),
    "can't load the library": ("mark('trouble', text='RuntimeError: no'); sys.exit(72)", "not-started"),
    "sees no CUDA call": (
        GOOD.replace("2 errors", BEFORE_FIRST_CALL),
        "not-instrumented",
    ),
    "stops half-way with 0": (
        "clean(names[:2]); xml.write_text(NOTHING); log.write_text('========= ERROR SUMMARY: 0 errors')",
        "died-without-report",
    ),
    "fails in an API call alone": (
        GOOD.replace(RECORDS,
        "NOTHING.replace('</C', '<record><kind>Api</kind></record></C')"),
        "api-error",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", BLIND)
def test_a_tool_that_doesnt_do_its_work_never_passes(fake: MakeLaunch, tmp_path: Path, how: str) -> None:
    body, code = BLIND[how]
    assert code == "control-not-found" or body != GOOD
    found = verdict(fake(body), tmp_path / "runs")
    assert found.word == "unknown"
    assert code in [reason.code for reason in found.reasons]
    assert found.line.startswith("verdict: unknown (")


def test_after_a_case_that_kills_the_context_the_rest_goes_on(fake: MakeLaunch, tmp_path: Path) -> None:
    body = (
        PLANTED
        + """
if "b" in names:
    clean(["a"])
    mark("begin", case="b")
    xml.write_text(sample("new_mem_mis.xml"))
    log.write_text("========= ERROR SUMMARY: 6 errors")
    sys.exit(99)
clean(names[:-1])
planted()
"""
    )
    found = verdict(fake(body), tmp_path / "runs")
    assert found.word == "rejected" and len(found.signs) == 2
    assert [(f.case, f.place, f.threads) for f in found.findings] == [("b", "s.cu:5", 2)]
    assert [reason.code for reason in found.reasons] == ["memory-error"]


OPTIONS = {
    "memcheck": "--padding 64 --track-stream-ordered-races all",
    "racecheck": "--racecheck-report analysis",
    "initcheck": "",
    "synccheck": "",
}


@pytest.mark.parametrize("tool", OPTIONS)
def test_how_a_tool_is_called(
    fake: MakeLaunch, tmp_path: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync")
    seen = tmp_path / "seen.json"
    body = f"Path({str(seen)!r}).write_text(json.dumps([arguments, dict(os.environ)]))\n"
    verdict(fake(body + GOOD, tool), tmp_path / "runs", tool)
    arguments, env = json.loads(seen.read_text())
    text = " ".join(arguments)
    assert text.startswith(f"--tool {tool} --error-exitcode 99 --print-limit 1000 --xml --save ")
    assert f"{OPTIONS[tool]} {sys.executable} -m sanitizer.worker --backend cuda" in text
    assert ("--untouched" in arguments) == (tool == "initcheck")
    assert env["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1" and "PYTORCH_CUDA_ALLOC_CONF" not in env


def test_our_own_sources_are_named_by_their_path_here(fake: MakeLaunch, tmp_path: Path) -> None:
    body = (
        PLANTED
        + """
if "b" in names:
    mark("begin", case="b")
    xml.write_text(sample("mem_oob.xml").replace("<path>s.cu<", "<path>/cuda/table.cuh<"))
    log.write_text("========= ERROR SUMMARY: 2 errors")
    sys.exit(99)
planted()
"""
    )
    found = verdict(fake(body), tmp_path / "runs")
    assert [f.place for f in found.findings] == ["kernels/src/cuda/table.cuh:4"]


EVERY = """
if not names[0].startswith("control:"):
    mark("begin", case=names[0])
    xml.write_text(sample("mem_oob.xml"))
    log.write_text("========= ERROR SUMMARY: 2 errors")
    sys.exit(99)
planted()
"""


def test_a_fault_in_every_case_ends_after_a_few_and_still_runs_the_control(
    fake: MakeLaunch, tmp_path: Path
) -> None:
    told: list[str] = []
    launch = fake(PLANTED + EVERY)
    batch = Batch(launch=launch, folder=tmp_path / "runs", most_faults=2, tell=told.append)
    found = judge.judge(CASES, CONTROLS, batch.play((*CASES, *CONTROLS)), scope="x")
    assert found.word == "rejected" and found.controls == CONTROLS and len(found.signs) == 3
    assert [finding.case for finding in found.findings] == ["a", "b"]
    assert [reason.code for reason in found.reasons] == ["memory-error", "cases-missing"]
    assert [line.split(" at ")[1] for line in told] == ["s.cu:4", "s.cu:4"]


RACE = """
kinds = []
if "c" in names:
    kinds.append(sample("race.xml"))
if "control:racecheck" in names:
    kinds.append(sample("race.xml").replace("<func>race<", "<func>kernelgate_control_racecheck<"))
clean(names)
mark("finished")
records = "".join(text.split("<ComputeSanitizerOutput>")[1].split("</ComputeS")[0] for text in kinds)
xml.write_text(NOTHING.replace("</C", records + "</C"))
log.write_text(f"RACECHECK SUMMARY: {len(kinds)} hazards displayed (1 error, 0 warnings)")
sys.exit(99 if kinds else 0)
"""


def test_a_finding_that_doesnt_end_the_process_is_laid_to_its_case(fake: MakeLaunch, tmp_path: Path) -> None:
    found = verdict(fake(RACE, "racecheck"), tmp_path / "runs", "racecheck")
    assert found.word == "rejected" and found.controls == ("control:racecheck",)
    assert [(f.case, f.kernel) for f in found.findings] == [("c", "race")]


def test_a_search_that_costs_too_much_leaves_the_finding_without_a_case(
    fake: MakeLaunch, tmp_path: Path
) -> None:
    batch = Batch(launch=fake(RACE, "racecheck"), folder=tmp_path / "runs", searches=2)
    controls = ("control:racecheck",)
    found = judge.judge(CASES, controls, batch.play((*CASES, *controls)), scope="x")
    assert found.word == "rejected" and len(found.signs) == 3
    assert [(f.case, f.kernel) for f in found.findings] == [("", "race")]


def test_without_the_faulty_case_the_same_tool_admits(fake: MakeLaunch, tmp_path: Path) -> None:
    launch = fake(RACE, "racecheck")
    controls = ("control:racecheck",)
    attempts = Batch(launch=launch, folder=tmp_path / "runs").play(("a", "b", *controls))
    assert judge.judge(("a", "b"), controls, attempts, scope="x").word == "admitted"


def test_a_wrong_outcome_rejects(fake: MakeLaunch, tmp_path: Path) -> None:
    body = PLANTED + "clean(['a', 'b', 'c']); mark('begin', case='d')\n"
    body += "mark('end', case='d', complaint='not refused'); planted()\n"
    found = verdict(fake(body), tmp_path / "runs")
    assert found.word == "rejected" and found.complaints == (("d", "not refused"),)


def test_a_run_that_leaves_cases_out_is_unknown(fake: MakeLaunch, tmp_path: Path) -> None:
    found = verdict(fake(PLANTED + "clean(['a', 'b']); planted()\n"), tmp_path / "runs")
    assert found.word == "unknown" and "cases-missing" in [reason.code for reason in found.reasons]


def test_no_cases_or_no_control_is_unknown() -> None:
    assert judge.judge((), ("control:memcheck",), (), scope="x").word == "unknown"
    assert judge.judge((), (), (), scope="x").word == "unknown"
