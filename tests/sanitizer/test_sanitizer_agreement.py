"""Over the whole grid of signs, only what one sound run leaves is believed, tool by tool."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import pytest

from sanitizer import cuda, judge
from sanitizer.agreement import RULES, Signs
from sanitizer.batch import Attempt
from sanitizer.cuda import TOOLS
from sanitizer.judge import Judgement
from sanitizer.process import Ended
from sanitizer.suppressions import Suppression

Events = list[dict[str, object]]

SAMPLES = Path(__file__).parent / "samples"
STATUSES = (0, 1, 99, 71, 255, -11, None)
RECORD = (
    "<record><kind>{kind}</kind><what><text>read</text></what><where><func>{func}</func></where></record>"
)
RACE = (
    "<record><kind>Analysis</kind><level>Error</level><what><text>Race</text><source><direction>Write"
    "</direction><where><func>{func}</func></where></source></what></record>"
)
KINDS = {"memcheck": "Precise", "initcheck": "Initcheck", "synccheck": "Synccheck"}
API = "<record><kind>Api</kind><what><text>cuLaunchKernel gave error 1</text></what></record>"
STICKY = "<record><kind>Sanitizer</kind><what><text>Sticky error</text></what></record>"
OWN_ERROR = "========= Internal Sanitizer Error: The Sanitizer encountered an error when loading a module"


def record(tool: str, func: str) -> str:
    return (RACE if tool == "racecheck" else RECORD).format(kind=KINDS.get(tool), func=func)


def reports(tool: str) -> dict[str, str | None]:
    control, kernel = record(tool, f"kernelgate_control_{tool}"), record(tool, "attention")
    bodies = {
        "empty": "", "control": control, "control twice": control * 2, "control, kernel": control + kernel,
        "kernel": kernel, "api": API, "api, control": API + control, "control, api": control + API,
        "sticky, control": STICKY + control, "control, sticky": control + STICKY,
        "unknown": control + "<record/>",
        "control's namesake": record(tool, f"kernelgate_control_{tool}_mine(float*)"),
        "no place": "<record><kind>Precise</kind></record>",
    }  # fmt: skip
    whole = {
        name: f"<ComputeSanitizerOutput>{body}</ComputeSanitizerOutput>" for name, body in bodies.items()
    }
    return {**whole, "missing": None, "cut off": whole["control"][:-10], "of another": "<x/>"}


def logs(tool: str) -> dict[str, str]:
    own, other = (
        "ERROR SUMMARY: {} error{}",
        "RACECHECK SUMMARY: {} hazard{} displayed (0 errors, 0 warnings)",
    )
    if tool == "racecheck":
        own, other = other, own
    counts = {str(n): f"========= {own.format(n, '' if n == 1 else 's')}\n" for n in range(3)}
    return {
        **counts,
        "none": "",
        "of another tool": f"========= {other.format(1, '')}\n",
        "both tools'": counts["1"] + other.format(0, "s"),
        "1 then 0": counts["1"] + counts["0"],
        "an error of its own": f"{OWN_ERROR}\n{counts['1']}",
        "a crash": f"========= Error: process crashed\n{counts['1']}",
        "a worker that left": "========= Error: process didn't terminate successfully\n"
        f"========= Target application returned an error\n{counts['1']}",
        "no call": f"{counts['1']}Target application terminated before first instrumented API call",
    }


def events(tool: str) -> dict[str, Events]:
    def of(name: str) -> Events:
        return [{"event": "begin", "case": name}, {"event": "end", "case": name, "complaint": None}]

    case, control = of("c"), of(f"control:{tool}")
    finished: Events = [{"event": "finished"}]
    return {
        "finished": case + control + finished, "unfinished": case + control,
        "control open": case + control[:1],
        "case open": case[:1], "control alone": control + finished, "finished alone": finished, "none": [],
        "case alone": case + finished,
    }  # fmt: skip


def collected(tool: str, folder: Path, xml: str | None, log: str, seen: Events) -> Signs:
    """What is read of a run that left these files and ended with 99."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    if xml is not None:
        report.write_text(xml)
    (folder / "tool.txt").write_text(log)
    (folder / "marks.jsonl").write_text("".join(json.dumps(event) + "\n" for event in seen))
    return cuda.collect(Ended(status=99, output=""), tool, folder)


def attempt(signs: Signs) -> Attempt:
    return cuda.attempt(("c", f"control:{signs.tool}"), signs, signs.tool)


def judged(signs: Signs, *known: Suppression) -> Judgement:
    return judge.judge(("c",), (f"control:{signs.tool}",), [attempt(signs)], known, scope="x")


def admitted(tool: str, folder: Path) -> Iterator[tuple[str, str, str, int | None]]:
    bodies = {name: collected(tool, folder, body, "", []) for name, body in reports(tool).items()}
    seen = {name: collected(tool, folder, None, "", one).marks for name, one in events(tool).items()}
    for xml, (log, text), marks, status in product(bodies, logs(tool).items(), seen, STATUSES):
        ended = Ended(status=status, output="")
        if judged(replace(bodies[xml], log=text, marks=seen[marks], ended=ended)).word == "admitted":
            yield xml, log, marks, status


# What may be beside the control's one record, how many the log counts, and how the process ended.
GONE_ON = {("control", "1", "finished", 99), ("control twice", "2", "finished", 99)}
LEFT_OPEN = {
    (xml, log, "control open", status)
    for xml, log in (("control", "1"), ("control twice", "2"), ("control", "a worker that left"))
    for status in (99, 71)
}
FOLLOWED = {
    (xml, log, "control open", status)
    for xml, log in (
        ("control, api", "2"),
        ("control, sticky", "1"),
        ("control, sticky", "2"),
        ("control, sticky", "a worker that left"),
    )
    for status in (99, 71)
}
SOUND = {
    "memcheck": GONE_ON | LEFT_OPEN | FOLLOWED,
    "synccheck": GONE_ON | LEFT_OPEN,
    "initcheck": GONE_ON,
    "racecheck": GONE_ON,
}


@pytest.mark.parametrize("tool", TOOLS)
def test_only_signs_that_tell_one_story_are_believed(tool: str, tmp_path: Path) -> None:
    assert set(admitted(tool, tmp_path)) == SOUND[tool]


@pytest.mark.parametrize(
    ("tool", "xml", "log", "marks", "code"),
    [
        ("memcheck", "control, api", "2", "finished", "api-error"),
        ("memcheck", "api, control", "2", "control open", "api-error"),
        ("synccheck", "control, api", "2", "control open", "api-error"),
        ("racecheck", "control, sticky", "1", "finished", "api-error"),
        ("initcheck", "control", "an error of its own", "finished", "tool-error"),
        ("initcheck", "control", "a worker that left", "finished", "tool-error"),
        ("memcheck", "control", "1", "case open", "signs-disagree"),
        ("memcheck", "control", "both tools'", "control open", "signs-disagree"),
        ("racecheck", "control", "1", "control open", "signs-disagree"),
        ("initcheck", "control", "1", "unfinished", "died-without-report"),
    ],
)
def test_a_disagreement_is_named(
    tool: str, xml: str, log: str, marks: str, code: str, tmp_path: Path
) -> None:
    tried = attempt(collected(tool, tmp_path, reports(tool)[xml], logs(tool)[log], events(tool)[marks]))
    assert code in [reason.code for reason in tried.problems] and code in [name for name, _ in RULES]


def test_what_a_real_run_of_each_tool_leaves_is_believed(tmp_path: Path) -> None:
    """Records of an H200, with the kernel's name of the control; its exit status, count and marks."""
    for tool, sample, kernel, log, marks in (
        ("memcheck", "new_mem_mis.xml", "misaligned", "ERROR SUMMARY: 6 errors", "control open"),
        ("initcheck", "init.xml", "uninit", "ERROR SUMMARY: 2 errors", "finished"),
        ("synccheck", "sync.xml", "kernelgate_control_synccheck", "ERROR SUMMARY: 2 errors", "control open"),
        ("racecheck", "race.xml", "race", "RACECHECK SUMMARY: 1 hazard displayed (1 error)", "finished"),
    ):
        xml = (SAMPLES / sample).read_text().replace(f"<func>{kernel}<", f"<func>kernelgate_control_{tool}<")
        found = judged(collected(tool, tmp_path, xml, f"========= {log}\n", events(tool)[marks]))
        assert found.word == "admitted", (tool, found.reasons)


def test_a_suppressed_finding_passes_only_in_a_case_that_ended(tmp_path: Path) -> None:
    known = Suppression(
        patterns={"kernel": "attention"}, reason="x", expires=date.today() + timedelta(days=9)
    )
    for tool, log, marks, word, text in (
        (
            "racecheck",
            "2",
            "finished",
            "admitted",
            "0 cases clean, 1 planted found; 1 finding suppressed in 1 case",
        ),
        (
            "memcheck",
            "1",
            "case open",
            "unknown",
            "1 case never came to an end",
        ),
    ):
        xml = reports(tool)["control, kernel" if tool == "racecheck" else "kernel"]
        found = judged(collected(tool, tmp_path, xml, logs(tool)[log], events(tool)[marks]), known)
        assert found.word == word and any(text in reason.text for reason in found.reasons)
        assert (found.reasons[0].code == "clean-but-suppressed") == (word == "admitted")
