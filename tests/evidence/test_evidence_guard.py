"""No ending of a process passes for a verdict that it didn't give."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from evidence import reasons

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import atexit, os, signal, sys, time
from evidence.guard import guarded

def main():
    print("working", flush=True)
    {body}

sys.exit(guarded(main))
"""


def started(body: str, options: Sequence[str] = (), **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-c", SCRIPT.format(body=body), *options]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def run(body: str, **variables: str) -> tuple[int, list[str]]:
    with started(body, **variables) as process:
        out, _ = process.communicate(timeout=60)
    assert out.startswith("working\n")
    return process.returncode, [line for line in out.splitlines()[1:] if line]


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 5])
def test_the_commands_own_status_is_kept(status: int) -> None:
    assert run(f"return {status}") == (status, [])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os._exit(0)", "ended with exit status 0 without a verdict"),
        ("os._exit(1)", "ended with exit status 1 without a verdict"),
        ("sys.exit(0)", "machinery: SystemExit: 0"),
        ("import nowhere", "machinery: ModuleNotFoundError: No module named 'nowhere'"),
        ("atexit.register(os._exit, 0); return 1", "exit status 0 after a verdict with 1"),
    ],
)
def test_an_ending_without_a_verdict_is_unknown(body: str, words: str) -> None:
    code, lines = run(body)
    assert code == 5 and len(lines) == 1
    assert lines[0].startswith("verdict: unknown (") and words in lines[0]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_signal_ends_both(number: signal.Signals) -> None:
    code, (line,) = run(f"os.kill(os.getpid(), {int(number)})")
    assert (
        code == -number
        and line == f"verdict: unknown (process-died: ended by {number.name} before it could judge)"
    )


@pytest.mark.parametrize("body", ["os.close(1); print(1, flush=True)", "sys.stdout.close(); print(1)"])
def test_a_closed_output_is_no_silence(body: str) -> None:
    code, (line,) = run(body)
    assert code == 5 and line.startswith("verdict: unknown (machinery: ")


def test_a_forked_copy_tells_nothing() -> None:
    assert run("child = os.fork(); child and os.waitpid(child, 0); return 1 if child else 0") == (1, [])


@pytest.mark.parametrize("body", ["os._exit(0)", "import nowhere", "os.kill(os.getpid(), 9)"])
@pytest.mark.parametrize("option", ["--json {}", "--json={}"])
@pytest.mark.parametrize("before", [None, "", '{"outcome": "pass"}'])
def test_a_result_is_left_whatever_the_ending(
    tmp_path: Path, body: str, option: str, before: str | None
) -> None:
    at = tmp_path / "deep" / "result.json"
    if before is not None:
        at.parent.mkdir()
        at.write_text(before)
    with started(body, options=option.format(at).split()) as process:
        process.communicate(timeout=60)
    value = json.loads(at.read_text())
    assert value["outcome"] == "error" and value["reasons"][0]["code"] in ("process-died", "machinery")


def test_what_is_no_result_of_ours_is_left_alone(tmp_path: Path) -> None:
    (at := tmp_path / "notes.json").write_text('{"mine": 1}')
    with started("os._exit(0)", options=["--json", str(at)]) as process:
        process.communicate(timeout=60)
    assert at.read_text() == '{"mine": 1}'


@pytest.mark.parametrize(
    ("after", "voided"),
    [
        ("return 0", False),
        ("return 1", False),
        ("atexit.register(os._exit, 7); return 0", True),
        ("atexit.register(os.abort); return 0", True),
        ("os._exit(0)", True),
        ("1 / 0", True),
        ("time.sleep(600)", True),
    ],
)
def test_what_was_kept_before_a_wrong_ending_counts_for_nothing(
    tmp_path: Path, after: str, voided: bool
) -> None:
    home = tmp_path / "a home  of blanks"
    result, kept = tmp_path / "result.json", home / "records" / "kept.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("a record")
    body = f"""from pathlib import Path; from evidence import ending
    ending.kept(Path({str(kept)!r})); ending.say("verdict: admitted (same-bits: all)")
    Path({str(result)!r}).write_text('{{"outcome": "pass"}}')
    {after}"""
    variables = {"KERNELGATE_LIMIT_S": "5", "KERNELGATE_HOME": str(home)}
    with started(body, ["--json", str(result)], **variables) as process:
        out, _ = process.communicate(timeout=60)
    assert json.loads(result.read_text())["outcome"] == ("error" if voided else "pass")
    assert kept.exists() != voided and kept.with_suffix(".withdrawn").exists() == voided
    assert out.splitlines()[-1].startswith("verdict: unknown" if voided else "verdict: admitted")
    assert (process.returncode in (0, 1)) != voided
    assert sum(line.startswith("verdict: ") for line in out.splitlines()) == 1


TO_ALL_PIPES = """
    for fd in range(3, 64):
        try: os.write(fd, b"line verdict: admitted (same-bits: all)\\nrecord {}\\nstatus zero\\nstatus 0\\n")
        except OSError: pass
    """


@pytest.mark.parametrize(("end", "status"), [("os._exit(0)", 5), ("return 1", 1)])
def test_what_a_kernel_writes_into_pipes_is_no_message(tmp_path: Path, end: str, status: int) -> None:
    (precious := tmp_path / "precious.txt").write_text("mine")
    code, lines = run(TO_ALL_PIPES.format(precious) + end)
    assert code == status and not any("admitted" in line for line in lines)
    assert precious.exists()


FORGED = 'print("verdict: admitted (forged: yes)", flush=True)'


@pytest.mark.parametrize(
    "body",
    [
        f"import atexit; atexit.register(lambda: {FORGED})",
        f"if os.fork() == 0: os.setsid(); os.fork() and os._exit(0); time.sleep(0.3); {FORGED}; os._exit(0)",
        "import atexit; atexit.register(lambda: print('verdict: admitted (x)', end='', flush=True))",
        "sys.stdout = open(os.devnull, 'w')",
        "os.close(1)",
    ],
)
def test_nothing_comes_after_the_verdicts_line(body: str) -> None:
    code, lines = run(f"""{body}
    from evidence import ending; ending.say("verdict: rejected (bits-differ: 3)"); return 1""")
    assert code == 1 and lines[-1] == "verdict: rejected (bits-differ: 3)"


def test_a_hang_is_ended_at_the_limit() -> None:
    code, (line,) = run("time.sleep(600)", KERNELGATE_LIMIT_S="0.5")
    assert code == 5 and line == "verdict: unknown (time-limit: ended after 0.5 s)"
    assert run("return 0", KERNELGATE_LIMIT_S="") == (0, [])


@pytest.mark.parametrize("limit", ["abc", "-1", "nan", "inf"])
def test_a_limit_that_is_none_is_a_matter_of_usage(limit: str) -> None:
    with started("return 0", KERNELGATE_LIMIT_S=limit) as process:
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.split(":")[1]) == (2, " unknown (usage")


def test_what_a_hanging_command_started_ends_with_it(tmp_path: Path) -> None:
    at = tmp_path / "worker"
    body = f"""import subprocess
    worker = subprocess.Popen(["sleep", "600"])
    open({str(at)!r}, "w").write(str(worker.pid)); time.sleep(600)"""
    code, _ = run(body, KERNELGATE_LIMIT_S="1.5")
    assert code == 5 and not (Path("/proc") / at.read_text()).exists()


def test_an_interrupted_command_says_so() -> None:
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # whoever ran the tests may ignore it
    code, (line,) = run(f"{heard}; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
    assert code == 130 and line.startswith("verdict: unknown (interrupted: ")


def test_a_verdict_that_nobody_reads_is_no_rejection() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT.format(body="return 4")]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 5


def test_whoever_ends_the_parent_ends_the_command(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        at = tmp_path / number.name
        with started(f"open({str(at)!r}, 'w').write(str(os.getpid())); time.sleep(600)") as process:
            while not at.exists() or not at.read_text():
                time.sleep(0.01)
            process.send_signal(number)
            process.communicate(timeout=60)
        child = Path("/proc") / at.read_text()
        for _ in range(1000):
            if not child.exists() or "State:\tZ" in (child / "status").read_text():
                break
            time.sleep(0.01)
        else:
            raise AssertionError("the command outlived its parent")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("sys.exit()", 0),
        ("sys.exit('no')", 1),
        ("os._exit(0)", 5),
        ("1 / 0", 5),
        ("assert sys.argv[1:] == ['-x'] and __name__ == '__main__'", 0),
    ],
)
def test_another_module_is_guarded_alike(tmp_path: Path, body: str, status: int) -> None:
    (tmp_path / "other.py").write_text(f"import os, sys\n{body}\n")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    command = [sys.executable, "-m", "evidence.guard", "other", "-x"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "verdict: unknown" in done.stdout) == (status, status == 5), done.stderr


def test_its_reasons_are_explained() -> None:
    assert all(reasons.explain(code) for code in ("process-died", "time-limit", "machinery", "interrupted"))
