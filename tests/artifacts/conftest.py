"""A tiny CMake project with the kernels' interface, so that builds take a second."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

CMAKE = """
cmake_minimum_required(VERSION 3.22)
set(CMAKE_CXX_COMPILER_WORKS 1)
project(tiny LANGUAGES CXX)
string(REPLACE ":" ";" parts "${GROUPED_TARGETS}")
list(GET parts 0 backend)
set(name "grouped_attention-${backend}-sm_70")
add_library(tiny MODULE src/common.cc src/${backend}.cc)
target_include_directories(tiny PRIVATE include)
target_compile_options(tiny PRIVATE "-Wa,-I${CMAKE_CURRENT_SOURCE_DIR}/src")
set_target_properties(tiny PROPERTIES PREFIX "" OUTPUT_NAME ${name})
install(TARGETS tiny LIBRARY DESTINATION .)
if(backend STREQUAL "cuda")
  install(FILES src/device.cubin DESTINATION . RENAME ${name}.cubin)
  install(FILES src/device.ptxas.txt DESTINATION . RENAME ${name}.ptxas.txt)
endif()
"""
FILES = {
    "CMakeLists.txt": CMAKE,
    "include/answer.h": "#define ANSWER 42\n",
    "src/common.cc": 'extern "C" const char* where() { return __FILE__; }\n',
    "src/host.cc": '#include "answer.h"\nextern "C" int answer() { return ANSWER; }\n',
    "src/cuda.cc": 'asm(".section .rodata\\n.incbin \\"device.cubin\\"");\n',
    "src/device.ptxas.txt": "ptxas info    : 0 bytes gmem\n",
    "README.md": "not compiled\n",
}

MakeElf = Callable[..., bytes]


@pytest.fixture
def make_elf() -> MakeElf:
    """Builds an ELF64 file from name -> bytes; a name given as an int has that size and no bytes."""

    def make(content: Mapping[str, bytes | int]) -> bytes:
        names, offsets = b"\0", {}
        for name in (*content, ".shstrtab"):
            offsets[name] = len(names)
            names += name.encode() + b"\0"
        body, headers = bytearray(), [bytes(64)]
        for name, data in (*content.items(), (".shstrtab", names)):
            kind, size = (8, data) if isinstance(data, int) else (1, len(data))
            headers.append(
                struct.pack("<IIQQQQIIQQ", offsets[name], kind, 0, 0, 64 + len(body), size, 0, 0, 1, 0)
            )
            body += b"" if isinstance(data, int) else data
        start = 64 + len(body)
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        head = struct.pack(
            "<16sHHIQQQIHHHHHH",
            ident,
            2,
            190,
            1,
            0,
            0,
            start,
            0,
            64,
            0,
            0,
            64,
            len(headers),
            len(headers) - 1,
        )
        return head + bytes(body) + b"".join(headers)

    return make


@pytest.fixture
def write_project(make_elf: MakeElf) -> Callable[[Path], Path]:
    """Writes the tiny project into a kernels/ folder below a path and returns it."""

    def write(below: Path) -> Path:
        kernels = below / "kernels"
        for name, text in FILES.items():
            (kernels / name).parent.mkdir(parents=True, exist_ok=True)
            (kernels / name).write_text(text)
        (kernels / "src" / "device.cubin").write_bytes(make_elf({".text.k": b"code", ".nv.info": b""}))
        return kernels

    return write


@pytest.fixture
def project(tmp_path: Path, write_project: Callable[[Path], Path]) -> Path:
    """The tiny kernels/ folder."""
    return write_project(tmp_path / "tree")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A .kernelgate of the test's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("KERNELGATE_HOME", str(folder))
    monkeypatch.delenv("GROUPED_ATTENTION_STORE", raising=False)
    return folder


@pytest.fixture
def git() -> Callable[..., str]:
    """Runs git in a folder, with an identity, and returns its output."""

    def run(folder: Path, *arguments: str) -> str:
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", str(folder), *identity, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout.strip()

    return run


@pytest.fixture
def repository(project: Path, git: Callable[..., str]) -> Path:
    """A repository with the tiny project, two commits on main."""
    root = project.parent
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text(".kernelgate/\n*.ignored\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "one")
    (root / "note.txt").write_text("second\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "two")
    return root
