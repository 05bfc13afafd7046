"""The same bits, close to the truth: replays stored inputs through a kernel and compares with goldens and oracle."""
