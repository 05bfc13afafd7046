"""Latency of the operation on a GPU, beside a streaming read of the same bytes in the same run."""
