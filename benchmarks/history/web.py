"""Makes asv's pages work without the internet: their libraries beside them, pinned by web/package-lock.json.

asv's index page loads them from content networks. npm, where it is installed, fetches the same releases once
and checks their hashes; without it the pages stay as they are, and the verdict says so.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from evidence.places import home

LOCKED = Path(__file__).parent / "web"
TIMEOUT_S = 300
LIBRARIES = {
    "jquery-3.3.1.min.js": "jquery/dist/jquery.min.js",
    "jquery.flot.min.js": "flot/jquery.flot.js",
    "jquery.flot.time.min.js": "flot/jquery.flot.time.js",
    "jquery.flot.selection.min.js": "flot/jquery.flot.selection.js",
    "jquery.flot.categories.min.js": "flot/jquery.flot.categories.js",
    "jquery.flot.orderBars.js": "flot-orderbars/js/jquery.flot.orderBars.js",
    "stupidtable.min.js": "stupid-table-plugin/stupidtable.min.js",
    "md5.min.js": "blueimp-md5/js/md5.min.js",
    "bootstrap.min.js": "bootstrap/dist/js/bootstrap.min.js",
    "bootstrap.min.css": "bootstrap/dist/css/bootstrap.min.css",
}
LICENSES = ("jquery/LICENSE.txt", "flot/LICENSE.txt", "bootstrap/LICENSE", "blueimp-md5/LICENSE.txt")
_EXTERNAL = re.compile(
    r'<(?P<tag>script|link)\b(?P<before>[^>]*?)(?P<name>src|href)="(?P<url>https://[^"]+)"[^>]*>'
)


class WebError(Exception):
    """The libraries can't be had; the message says why."""


def localise(out: Path) -> None:
    """Copy the libraries into `out`/web and let its index page use them; WebError leaves all as it was."""
    page = (out / "index.html").read_text()
    wanted = [found["url"] for found in _EXTERNAL.finditer(page)]
    unknown = [url for url in wanted if _name(url) not in LIBRARIES]
    if unknown or not wanted:
        raise WebError(f"this asv's page loads what web.py doesn't know: {unknown or 'nothing'}")
    source = _fetched()
    for url in wanted:
        _copy(source / LIBRARIES[_name(url)], out / "web" / _name(url))
    for name in LICENSES:
        _copy(source / name, out / "web" / "licenses" / f"{name.split('/')[0]}.txt")
    (out / "index.html").write_text(_EXTERNAL.sub(_local, page))


def _fetched() -> Path:
    """node_modules with exactly the locked packages, fetched once."""
    lock = (LOCKED / "package-lock.json").read_bytes()
    place = home() / "history" / f"web-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not (place / ".complete").exists():
        _fetch(place)
    return place / "node_modules"


def _fetch(place: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise WebError("npm is not installed")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(LOCKED / name, place / name)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WebError(f"npm ci: {error}") from error
    if done.returncode != 0:
        raise WebError(f"npm ci: exit status {done.returncode}: {(done.stderr.splitlines() or [''])[0]}")
    (place / ".complete").touch()


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _local(found: re.Match[str]) -> str:
    """The tag with the copy's address. asv's hash is of another packing of the release; npm checked ours."""
    address = f'{found["name"]}="web/{_name(found["url"])}"'
    failure = ' onerror="js_load_failure()"' if found["tag"] == "script" else ""
    return f"<{found['tag']}{found['before']}{address}{failure}>"


def _name(url: str) -> str:
    return url.rsplit("/", 1)[-1]
