"""The time that no kernel can beat: the bytes that it must read, over the most that the device can move."""

from __future__ import annotations

from typing import Any

# Where the driver doesn't tell: vendors' peak figures for the device memory, bytes a second.
PEAKS = {"H200": 4.8e12, "H100": 3.35e12, "A100": 2.04e12, "V100": 0.9e12}
UNKNOWN_PEAK = 8e12  # above any device of today: a floor that is too low alarms too late, never wrongly
# With a hot L2 the bytes needn't come from memory. Reads at 1.2 times the peak were seen, never at 4 times.
HOT_FACTOR = 4.0
# A processor's caches outrun its memory; no machine of today reads this much on the cores of one process.
HOST_PEAK = 4e12


def floor_us(kv_bytes: int, peak_bytes_per_s: float, *, hot: bool) -> float:
    """Microseconds for reading `kv_bytes` once."""
    return kv_bytes / (peak_bytes_per_s * (HOT_FACTOR if hot else 1.0)) * 1e6


def peak(properties: Any) -> float:
    """A GPU's peak in bytes a second, from torch's device properties, else by its name."""
    clock_khz = getattr(properties, "memory_clock_rate", 0)
    width_bits = getattr(properties, "memory_bus_width", 0)
    if clock_khz and width_bits:
        return float(2 * clock_khz * 1e3 * width_bits / 8)
    named = (value for name, value in PEAKS.items() if name in properties.name)
    return next(named, UNKNOWN_PEAK)
