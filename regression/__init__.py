"""The same bits, close to the truth: stored inputs, a kernel, its goldens and the oracle."""
