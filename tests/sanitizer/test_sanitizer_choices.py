"""What is found, chosen and suppressed, and what is refused with a reason."""

import json
import os
import subprocess
import sys
from datetime import date, timedelta
from importlib import metadata
from pathlib import Path

import pytest

from evidence import machine
from sanitizer import cli, command, controls, marks, outputs, planting, suppressions, tools
from sanitizer.findings import Finding, merged
from sanitizer.host import worker_environment
from sanitizer.process import Limits, run
from sanitizer.suppressions import SuppressionError

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
ENTRY = '[[suppress]]\nkernel = "combine*"\nreason = "known"\nexpires = 2030-01-31\n'


def installed(folder: Path, text: str, status: int = 0) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "compute-sanitizer"
    script.write_text(f"#!/bin/sh\necho '{text}'\nexit {status}\n")
    script.chmod(0o755)
    return {"PATH": str(folder)}


def test_the_tool_is_found_on_path_and_in_cuda_home(tmp_path: Path) -> None:
    env = installed(tmp_path / "bin", "Version 2025.3.1.0 (build 1)")
    assert tools.find("sm_90", env).version == (2025, 3, 1)
    found = tools.find("sm_90", {"PATH": "/nowhere", "CUDA_HOME": str(tmp_path)})
    assert found.path == tmp_path / "bin" / "compute-sanitizer"
    assert found.text == "compute-sanitizer 2025.3.1"


def test_planted_kernels_may_be_carried_beside_the_artifact(tmp_path: Path) -> None:
    artifact = tmp_path / "cuda-sm_90"
    artifact.mkdir()
    assert controls.carried(artifact, "sm_90") is None and controls.carried(None, "sm_90") is None
    (tmp_path / "control-sm_90.cubin").write_bytes(b"")
    assert controls.carried(artifact, "sm_90") == controls.carried(tmp_path, "sm_90")
    assert controls.carried(artifact, "sm_90") == tmp_path / "control-sm_90.cubin"
    assert controls.carried(artifact, "sm_70") is None


def test_volta_needs_an_older_release(tmp_path: Path) -> None:
    env = installed(tmp_path / "new", "Version 2025.3.0")
    with pytest.raises(tools.ToolError, match="nvidia-cuda-sanitizer-api-cu12") as caught:
        tools.find("sm_70", env)
    assert caught.value.code == "tool-too-new"
    installed(tmp_path / "home" / "bin", "Version 2025.2.1")
    assert tools.find("sm_70", {**env, "CUDA_HOME": str(tmp_path / "home")}).version == (2025, 2, 1)


def test_a_missing_or_broken_tool_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_name: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "distribution", absent)
    for arch, wheel in (("sm_90", "sanitizer-api$"), ("sm_70", "sanitizer-api-cu12$")):
        with pytest.raises(tools.ToolError, match=wheel) as caught:
            tools.find(arch, {"PATH": "/nowhere"})
        assert caught.value.code == "no-tool"
    for text, status in (("Version 2025.1.0", 1), ("no number", 0)):
        with pytest.raises(tools.ToolError) as caught:
            tools.find("sm_90", installed(tmp_path / "bad", text, status))
        assert caught.value.code == "tool-failed"


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_without_a_gpu_cuda_is_unknown(
    tool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "gpus_seen", lambda: ([], "none"))
    assert cli.main([tool, "--backend", "cuda"]) == 4
    assert capsys.readouterr().out.splitlines()[-1].startswith("verdict: unknown (no-gpu: ")
    if tool != "memcheck":
        assert cli.main([tool]) == 4
        assert cli.main([tool, "--backend", "host"]) == 2


def test_usage_is_refused_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["memcheck", "--cases", "nonsense"]) == 2
    assert "no case is called nonsense" in capsys.readouterr().out
    assert cli.main(["memcheck", "--suppressions", str(tmp_path / "none.toml")]) == 2
    assert cli.main(["leaks"]) == 2
    assert cli.main(["memcheck", "--backend", "host", "--library", str(tmp_path / "none.so")]) == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ENTRY.replace('reason = "known"\n', ""), "needs a reason"),
        (ENTRY.replace("known", " "), "needs a reason"),
        (ENTRY.replace("expires = 2030-01-31", ""), "needs an expiry"),
        (ENTRY.replace("2030-01-31", '"later"'), "needs an expiry"),
        (ENTRY.replace('kernel = "combine*"', 'tool = "memcheck"'), "needs kind, kernel"),
        (ENTRY.replace("kernel", "kernle"), "fields are"),
        ("suppress = 3", "holds"),
        ("[[suppress", "entry|Expected|line"),
    ],
)
def test_a_suppression_without_reason_or_expiry_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(SuppressionError, match=words):
        suppressions.read(path, date(2029, 6, 1))


def test_a_suppression_of_more_than_a_year_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(ENTRY)
    day = date(2030, 1, 31) - suppressions.LONGEST
    assert len(suppressions.read(path, day)) == 1
    with pytest.raises(SuppressionError, match="entry 1: expires more than a year ahead: 2030-01-30"):
        suppressions.read(path, day - timedelta(days=1))
    path.write_text(ENTRY.replace("2030-01-31", "9999-12-31"))
    assert cli.main(["memcheck", "--suppressions", str(path)]) == 2


def test_a_suppression_hides_what_fits_until_it_expires(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(ENTRY)
    entries = suppressions.read(path, date(2029, 6, 1))
    one, other = (Finding(tool="memcheck", kind="x", text="t", kernel=k) for k in ("combine_a", "split"))
    assert suppressions.split([one, other], entries, date(2030, 1, 31)) == ((other,), (one,))
    assert suppressions.split([one, other], entries, date(2030, 2, 1)) == ((one, other), ())
    assert suppressions.read(None) == ()


def test_threads_are_merged_and_places_are_not() -> None:
    base = Finding(tool="memcheck", kind="x", text="t", kernel="k", file="f", line=1, thread="0")
    again = Finding(**{**base.as_json(), "thread": "1", "address": "0x1"})
    elsewhere = Finding(**{**base.as_json(), "line": 2})
    found = merged([base, again, elsewhere])
    assert [(f.line, f.threads, f.thread) for f in found] == [(1, 2, "0"), (2, 1, "0")]
    text = outputs.table(found)
    assert "f:1" in text and "f:2" in text and len(text.splitlines()) == 3


def limits(folder: Path, whole_s: float = 60.0, quiet_s: float = 60.0) -> Limits:
    return Limits(whole_s=whole_s, quiet_s=quiet_s, watched=folder / "marks")


def lives(pid: Path) -> bool:
    stat = Path(f"/proc/{pid.read_text().strip()}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")


@pytest.mark.parametrize("limit", [{"whole_s": 1.0}, {"quiet_s": 1.0}])
def test_a_process_past_a_limit_takes_its_children_along(tmp_path: Path, limit: dict[str, float]) -> None:
    pid = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 600 & echo $! > {pid}; wait"]
    ended = run(command, log=tmp_path / "log", limits=limits(tmp_path, **limit), env=ENVIRONMENT)
    assert ended.status is None and ended.text == "ran past its time limit"
    assert not lives(pid)
    assert run(["false"], log=tmp_path / "log", limits=limits(tmp_path), env=ENVIRONMENT).status == 1


@pytest.mark.parametrize("group", ["", "os.setpgid(0, 0);"])
def test_a_process_that_ends_takes_its_children_along(tmp_path: Path, group: str) -> None:
    pid = tmp_path / "pid"
    forking = f"import os, time\nif os.fork() == 0: {group} open({str(pid)!r}, 'w').write(str(os.getpid())); "
    waiting = f"time.sleep(600)\nwhile not os.path.exists({str(pid)!r}): time.sleep(0.01)\n"
    ended = run(
        [sys.executable, "-c", f"{forking}{waiting}time.sleep(0.2)\nraise SystemExit(3)"],
        log=tmp_path / "log",
        limits=limits(tmp_path),
        env=ENVIRONMENT,
    )
    assert ended.status == 3 and not lives(pid)


def test_a_copy_of_the_worker_leaves_no_marks(tmp_path: Path) -> None:
    writer = marks.Writer(tmp_path / "marks")
    writer.write("begin", case="a")
    child = os.fork()
    if child == 0:
        writer.write("end", case="a", complaint=None)
        os._exit(0)
    os.waitpid(child, 0)
    assert marks.read(tmp_path / "marks").open == "a"
    writer.write("end", case="a", complaint=None)
    assert marks.read(tmp_path / "marks").ended == {"a": None}


def test_marks_that_keep_coming_are_no_hang(tmp_path: Path) -> None:
    seen: list[int] = []
    watched = Limits(whole_s=60, quiet_s=1.5, watched=tmp_path / "marks", grown=lambda: seen.append(1))
    command = ["sh", "-c", f"for n in 1 2 3 4 5 6; do echo $n >> {watched.watched}; sleep 0.5; done"]
    ended = run(command, log=tmp_path / "log", limits=watched, env=ENVIRONMENT)
    assert ended.status == 0 and len(seen) >= 3


@pytest.mark.parametrize("arch", ["sm_70", "sm_90"])
def test_every_tool_has_a_planted_kernel(arch: str, tmp_path: Path) -> None:
    cubin = controls.build_cuda(tmp_path, arch).read_bytes()
    for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
        (name,) = controls.names("cuda", tool)
        assert (planting.PREFIX + name.removeprefix("control:")).encode() in cubin
    done = [sys.executable, "-m", "sanitizer.controls", "--arch", arch, "--out", str(tmp_path / "there")]
    subprocess.run(done, check=True, timeout=120, env=worker_environment())
    assert (tmp_path / "there" / f"control-{arch}.cubin").read_bytes() == cubin


def test_every_end_leaves_its_results_and_no_other_file_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {"--json": tmp_path / "r.json", "--junit": tmp_path / "r.xml"}
    given = [text for option, path in paths.items() for text in (option, str(path))]
    for _ in range(2):
        assert cli.main(["racecheck", "--backend", "host", *given]) == 2
        written = json.loads(paths["--json"].read_text())
        assert written["verdict"]["word"] == "usage" and written["outcome"] == "unknown"
        assert written["reasons"][0]["code"] == "usage"
        assert 'failures="1"' in paths["--junit"].read_text()
    for option, path in paths.items():
        path.write_text("mine")
        assert cli.main(["racecheck", "--backend", "host", option, str(path)]) == 2
        assert f"usage: {option} {path} is no result" in capsys.readouterr().out
        assert path.read_text() == "mine"


def test_two_results_are_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "r")
    assert cli.main(["memcheck", "--json", path, "--junit", path]) == 2
    assert "usage: --json and --junit name one file" in capsys.readouterr().out


def test_what_fails_unforeseen_is_no_rejection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "run", lambda _options: 1 / 0)
    assert cli.main(["memcheck"]) == 5
    assert (
        capsys.readouterr().out.splitlines()[-1].startswith("verdict: unknown (machinery: ZeroDivisionError")
    )
