"""What makes two results of a suite comparable. The ids are asv's benchmark versions.

Results of another id are kept, counted and not drawn. An id holds everything that is passed to the
measuring command; its leading number is raised when that command starts to measure something else.
"""

from __future__ import annotations

from evidence import places

ROWS, PAGE, HEADS, HEAD_DIM = 5, 848, 6, 256
CONTEXTS = (8192, 65536, 131072, 262144)
GRAPHS, REPLAYS = 8, 30
HOST_CONTEXTS = (64, 1024)
HOST_SAMPLES = 8
ARCHITECTURES = ("sm_70", "sm_90")
INSTANCES = ("6x256", "3x64")
GROUPS = "core"

_SHAPE = f"rows {ROWS}, page {PAGE}, heads {HEADS}, head dim {HEAD_DIM}"
LATENCY = f"latency-1: {_SHAPE}, {GRAPHS} graphs of {REPLAYS} replays, cold L2"
HOST_CLOCK = f"host-clock-1: {_SHAPE}, {HOST_SAMPLES} samples of CPU time, one thread"
STATIC = "static-1"
REPLAY = f"replay-1: groups {GROUPS}, inputs {places.inputs_hash()[:12]}"
