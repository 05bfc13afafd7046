"""asv's benchmark folder: every module here is a suite, and nothing else."""
