"""How a timed test ends, and how a run of them does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from artifacts import Binary, Side
from artifacts.errors import ArtifactsError
from benchmarks.bench import saved
from benchmarks.bench.saved import Threshold
from evidence import places, record, store
from evidence.ending import OUTCOMES
from evidence.record import Reason, Subject

KIND, PROTOCOL = "bench", "bench-1"


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One test's end: `word` is bits-differ, slower, within or unknown (nothing to compare with).

    `times_s` are its rounds, of `launches` calls each; `subject` is what was timed.
    """

    name: str
    word: str
    text: str
    subject: Subject
    launches: int = 1
    times_s: tuple[float, ...] = ()

    @property
    def passed(self) -> bool:
        """The bits are right, and no saved run shows it slower than allowed."""
        return self.word in ("within", "unknown")


def judge(request: pytest.FixtureRequest, benchmark: Any, extension: Any, wrong: int, machine: str) -> Timed:
    """Compare a test that was just timed; what is said of it is saved with the run."""
    name, clock = (
        request.node.name,
        "host clock" if extension.backend == "cuda" else "host clock, plain calls",
    )
    key = {"test": name, "machine": machine, "clock": clock, "arch": extension.arch, "protocol": PROTOCOL}
    word, text = "bits-differ", f"{name}: {wrong} elements of what was timed aren't the golden's"
    if not wrong:
        found = saved.compare(
            _storage(request.config),
            key,
            benchmark.stats.stats.as_dict(),
            threshold(request.node, extension.backend),
            request.config.getoption("--reference"),
        )
        word, text = found.word, f"{name}: {found.text()}"
    binary = {"sha256": extension.sha256, "code_digest": extension.code_digest}
    timed = Timed(
        name=name,
        word=word,
        text=text,
        subject=Subject(backend=extension.backend, arch=extension.arch, **binary),
        launches=benchmark.extra_info["launches"],
        times_s=tuple(benchmark.stats.stats.data),
    )
    benchmark.extra_info.update(key=key, passed=timed.passed, word=word, text=text, **binary)
    return timed


def keep(found: Sequence[Timed], word: str, reason: str, started: datetime) -> Path:
    """Append the evidence record of a run, with every round."""
    code, _, text = reason.partition(": ")
    made = record.make(
        kind=KIND,
        artifact=found[0].subject,
        inputs=places.inputs_hash(),
        selection={"tests": [one.name for one in found], "protocol": PROTOCOL},
        outcome=OUTCOMES[word],
        reasons=(Reason(code=code, text=text),),
        results={"tests": [asdict(one) for one in found]},
        started_at=started,
        duration_s=(datetime.now(UTC) - started).total_seconds(),
    )
    return store.append(made)


def threshold(node: pytest.Item, backend: str) -> Threshold:
    """The test's own threshold for this backend, by its marker."""
    marker = node.get_closest_marker("threshold")
    if marker is None:
        raise saved.SavedError(f"{node.name} has no threshold marker")
    gpu, host = marker.args
    return Threshold.parse(gpu if backend == "cuda" else host)


def fitting(side: Side, backend: str | None) -> Binary:
    """The library of a folder that this machine should time; ArtifactsError when there is none."""
    wanted = backend or ("cuda" if torch.cuda.is_available() else "host")
    for binary in side.binaries:
        if binary.backend == wanted:
            return binary
    raise ArtifactsError("no-binary", f"{side.origin} holds no {wanted} library")


def conclude(found: Sequence[Timed], status: int) -> tuple[str, str]:
    """The word and the reason over all tests that were timed; `status` is pytest's own."""
    for word in ("bits-differ", "slower"):
        bad = [one for one in found if one.word == word]
        if bad:
            return "rejected", f"{word}: {len(bad)} of {len(found)}, first {bad[0].text}"
    if status != 0 or not found:
        return "unknown", f"nothing-measured: {len(found)} tests timed, pytest's exit status {status}"
    if any(one.subject.backend == "host" for one in found):
        text = "a CPU's clock tests the instrument and says nothing of the kernel"
        return "unknown", f"host-clock: {len(found)} tests timed; {text}"
    new = [one for one in found if one.word == "unknown"]
    if new:
        return "undecided", f"no-reference: {len(new)} of {len(found)} have no saved run to compare with"
    return "admitted", f"no-slower: {len(found)} tests within their thresholds"


def _storage(config: pytest.Config) -> Path:
    return Path(str(config.getoption("benchmark_storage")).removeprefix("file://"))
