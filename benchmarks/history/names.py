"""Environment variables by which the runner speaks to the plugin inside asv."""

COMMIT = "KERNELGATE_HISTORY_COMMIT"
DATE_MS = "KERNELGATE_HISTORY_DATE_MS"
MACHINE_FILE = "KERNELGATE_HISTORY_MACHINES"
