"""Headless Chromium on a folder that is served from this machine: what the page holds, and a picture of it.

`python tests/benchmarks/support/browser.py FOLDER PAGE OUT.png` takes the picture for the documentation.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZE = (1200, 800)
PATIENCE_MS, TIMEOUT_S = 10000, 120


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        """Nothing: the test's output is the page."""


def executable() -> str | None:
    """A Chromium, if one is installed."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The folder's address while it is served; pages may not fetch from file://."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def document(address: str) -> str:
    """The page's elements after its scripts have run."""
    return _run(address, "--dump-dom")


def picture(address: str, out: Path) -> None:
    """A PNG of the page."""
    _run(address, f"--screenshot={out}")


def _run(address: str, what: str) -> str:
    program = executable()
    if program is None:
        raise FileNotFoundError("no Chromium here")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            f"--virtual-time-budget={PATIENCE_MS}",
            what,
            address,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return done.stdout


if __name__ == "__main__":
    with serve(Path(sys.argv[1])) as served:
        picture(served + sys.argv[2], Path(sys.argv[3]))
