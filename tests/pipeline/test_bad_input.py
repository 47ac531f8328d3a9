"""Each bad input gives one clear line and exit code 2, and leaves nothing that breaks the next run."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

ASTRA = [sys.executable, "-c", "from astra_integrate.cli import main; main()"]
ROOT = Path(__file__).parents[2]

OP = "silu_and_mul"


def command(home: Path, *arguments: str, preexec=None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ASTRA, *arguments],
        env={**os.environ, "ASTRA_HOME": str(home), "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        cwd=home,
        preexec_fn=preexec,
    )


def refused(done: subprocess.CompletedProcess[str], *words: str) -> str:
    assert done.returncode == 2, (done.stdout, done.stderr)
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("astra: "), done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in line
    return line


@pytest.fixture
def index(tmp_path):
    """A package index of our own on this machine: ``serve(project, file name, bytes)``; its address is ``url``."""
    files: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.strip("/")
            if path.startswith("simple/"):
                project = path.removeprefix("simple/")
                own = {n: d for n, d in files.items() if n.startswith(f"{project}-")}
                links = "".join(
                    f'<a href="/files/{n}#sha256={hashlib.sha256(d).hexdigest()}">{n}</a>' for n, d in own.items()
                )
                self.reply(f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html")
            elif path.removeprefix("files/") in files:
                self.reply(files[path.removeprefix("files/")], "application/octet-stream")
            else:
                self.send_error(404)

        def reply(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    class Index:
        url = f"http://127.0.0.1:{server.server_port}/simple/"

        def serve(self, name: str, data: bytes) -> None:
            files[name] = data

    yield Index()
    server.shutdown()


def archive(entries: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        for name, data in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def test_unknown_framework(tmp_path):
    refused(command(tmp_path, "optimize", "vlm==0.12.0", OP), "vlm", "vllm")


def test_unknown_version(tmp_path, index):
    index.serve("vllm-0.12.0.tar.gz", archive({"vllm-0.12.0/pyproject.toml": b""}))
    line = refused(command(tmp_path, "optimize", "vllm==0.12.9", OP, ASTRA_INDEX_URL=index.url), "0.12.9")
    assert "0.12.0" in line


@pytest.mark.network
def test_unknown_kernel_suggests_near_names_and_starts_no_run(settings_, vllm_0_12):
    before = set((settings_.home / "runs").glob("*")) if (settings_.home / "runs").exists() else set()
    refused(command(settings_.home, "optimize", "vllm==0.12.0", "silu_and_mull"), "silu_and_mull", "silu_and_mul")
    after = set((settings_.home / "runs").glob("*")) if (settings_.home / "runs").exists() else set()
    assert after == before


def test_source_without_cuda(tmp_path):
    tree = tmp_path / "tree"
    (tree / "vllm").mkdir(parents=True)
    (tree / "pyproject.toml").write_text('[project]\nname = "vllm"\n')
    (tree / "vllm" / "__init__.py").touch()
    refused(command(tmp_path, "optimize", str(tree), OP), str(tree))


def test_corrupt_archive(tmp_path, index):
    whole = archive({"vllm-0.12.0/csrc/a.cu": os.urandom(5000)})
    index.serve("vllm-0.12.0.tar.gz", whole[: len(whole) // 2])
    refused(command(tmp_path, "optimize", "vllm==0.12.0", OP, ASTRA_INDEX_URL=index.url), "vllm-0.12.0")
    assert not list((tmp_path / "cache" / "sources").glob("vllm*"))


def test_archive_that_is_no_tar(tmp_path, index):
    index.serve("vllm-0.12.0.tar.gz", gzip.compress(b"not a tar file" * 1000))
    refused(command(tmp_path, "optimize", "vllm==0.12.0", OP, ASTRA_INDEX_URL=index.url), "vllm-0.12.0")


def test_path_traversing_archive(tmp_path, index):
    index.serve("vllm-0.12.0.tar.gz", archive({"vllm-0.12.0/a": b"", "vllm-0.12.0/../../../escaped": b"x"}))
    refused(command(tmp_path, "optimize", "vllm==0.12.0", OP, ASTRA_INDEX_URL=index.url), "escaped")
    assert not list(tmp_path.rglob("escaped"))


def test_cold_cache_with_no_network(tmp_path):
    closed = "http://127.0.0.1:9/simple/"
    refused(command(tmp_path, "optimize", "vllm==0.12.0", OP, ASTRA_INDEX_URL=closed), "vllm")
    refused(command(tmp_path, "optimize", "vllm==0.12.0", OP, ASTRA_OFFLINE="1"), "vllm")


def test_no_disk_space_then_space_again(tmp_path, index):
    """A file size limit makes every larger write fail as a full disk does; afterwards the same command gets on."""
    index.serve("vllm-0.12.0.tar.gz", archive({"vllm-0.12.0/csrc/a.cu": os.urandom(400_000)}))

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    environment = {"ASTRA_INDEX_URL": index.url}
    refused(command(tmp_path, "optimize", "vllm==0.12.0", OP, preexec=full, **environment))
    # The archive is no real framework, so the next run gets past the download and stops at the name.
    refused(command(tmp_path, "optimize", "vllm==0.12.0", OP, **environment), OP)


@pytest.mark.network
def test_no_compiler(settings_, vllm_0_12, tmp_path):
    """Without a C++ compiler on PATH the one line says how to get one."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "env", "sh"):
        (tools / name).symlink_to(shutil.which(name) or "/bin/true")
    done = command(settings_.home, "optimize", "vllm==0.12.0", OP, PATH=f"{tools}:{Path(sys.executable).parent}")
    refused(done, "compiler")


def test_wrong_setting_is_named(tmp_path):
    refused(command(tmp_path, "optimize", "vllm==0.12.0", OP, ASTRA_JOBS="many"), "ASTRA_JOBS")


def test_broken_settings_file_is_named(tmp_path):
    (tmp_path / "astra.toml").write_text("[astra\n")
    refused(command(tmp_path, "runs", "list"), "astra.toml")


@pytest.mark.network
def test_unknown_model_starts_no_run(settings_, vllm_0_12, toolchain):
    refused(command(settings_.home, "optimize", "vllm==0.12.0", OP, "--model", "oracle"), "'oracle'", "rules")
    runs = settings_.home / "runs"
    assert not runs.exists() or not [run for run in runs.glob("[0-9]*") if "oracle" in (run / "run.json").read_text()]
