"""What makes a time worthless: a void is left out and counted, an alarm ends the comparison."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.abba.sampling import BASE, Leg, State

THROTTLED, LOADED = "throttled", "loaded"


class AlarmError(Exception):
    """A comparison can't go on. `code` is a reason code; `rejects` when the candidate itself is at fault."""

    def __init__(self, code: str, text: str, *, rejects: bool = False) -> None:
        super().__init__(f"{code}: {text}")
        self.code, self.text, self.rejects = code, text, rejects


def check(legs: Sequence[Leg], floor_us: float) -> None:
    """AlarmError for outputs that aren't an eager call's, and for times that no machine can reach."""
    for leg in legs:
        if leg.wrong:
            raise _wrong(leg)
        if min(leg.times_us) < floor_us:
            text = f"the {leg.side} took {min(leg.times_us):.3f} µs a call; reading its keys and values takes"
            raise AlarmError("below-roofline", f"{text} at least {floor_us:.3f} µs on this machine")


def void(before: State, after: State) -> str | None:
    """Why a block between these two states doesn't count; AlarmError for a device error."""
    if before.errors is not None and after.errors is not None and after.errors > before.errors:
        raise AlarmError(
            "gpu-error", f"{after.errors - before.errors} uncorrected memory errors while timing"
        )
    reasons = sorted({*before.throttle, *after.throttle})
    return f"{THROTTLED}: {', '.join(reasons)}" if reasons else None


def void_by_load(before: int, after: int) -> str | None:
    """Why a pair doesn't count during whose timed blocks code was loaded or compiled."""
    return f"{LOADED}: {after - before} modules or shared objects" if after > before else None


def _wrong(leg: Leg) -> AlarmError:
    text = f"after a timed replay {leg.wrong} output elements of the {leg.side} aren't those of an eager call"
    if leg.side == BASE:
        return AlarmError("base-bits-differ", text)
    return AlarmError("bits-differ", text, rejects=True)
