"""Latency of the operation per context, by the host's clock around graph replays of many launches.

On a CPU the same tests make plain calls: that tests the instrument, and says nothing of the kernel. Run as
`nox -s bench`; the suite's own tests never collect this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.bench import subject

ROUNDS, WARM_UPS = 30, 3
THRESHOLDS = {8192: "median:5%", 65536: "median:3%", 131072: "median:2%", 262144: "median:2%"}
CASES = [
    pytest.param(
        context,
        id=str(context),
        marks=[
            pytest.mark.benchmark(group=f"context {context}"),
            pytest.mark.threshold(limit, "median:30%"),
        ],
    )
    for context, limit in THRESHOLDS.items()
]


@pytest.mark.parametrize("context", CASES)
def test_attention(benchmark: Any, extension: Any, judge: Callable[[int], None], context: int) -> None:
    """Poisoned before every round; all outputs are the golden's after the last, bit for bit."""
    if extension.backend == "host" and context not in subject.HOST_CONTEXTS:
        pytest.skip("a CPU would need minutes, and its time says nothing of the kernel")
    timed = subject.make(extension, context)
    benchmark.extra_info.update(launches=timed.launches, group=subject.group(context).id)
    benchmark.pedantic(timed.run, setup=timed.poison, rounds=ROUNDS, warmup_rounds=WARM_UPS, iterations=1)
    per_call_us = 1e6 * benchmark.stats.stats.median / timed.launches
    benchmark.extra_info["us_per_call"] = round(per_call_us, 3)
    judge(timed.wrong())
