"""A small package index on this machine, small archives and a small framework to put on it."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from astra_integrate.settings import Settings, load

KERNEL = "__global__ void scale_kernel(float* out) { out[threadIdx.x] *= 2; }\n"


@dataclass
class LocalIndex:
    """What the index serves, how it behaves, and what it was asked for (``method path range``)."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)
    yanked: set[str] = field(default_factory=set)
    json: bool = True
    ranges: bool = True
    cut: int = 0
    failing: int = 0
    slow: float = 0.0
    short: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def add(self, filename: str, content: bytes) -> bytes:
        self.files[filename] = content
        self.checksums[filename] = hashlib.sha256(content).hexdigest()
        return content

    def sent(self, filename: str) -> list[str]:
        return [line for line in self.asked if f"/files/{filename} " in line]

    def page(self, project: str) -> tuple[str, bytes] | None:
        names = sorted(name for name in self.files if _project(name) == project)
        if not names:
            return None
        if self.json:
            rows = [
                {
                    "filename": name,
                    "url": f"../../files/{name}",
                    "hashes": {"sha256": self.checksums[name]} if name in self.checksums else {},
                    "size": self.sizes.get(name, len(self.files[name])),
                    "yanked": name in self.yanked,
                }
                for name in names
            ]
            body = json.dumps({"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": rows})
            return "application/vnd.pypi.simple.v1+json", body.encode()
        links = [f'<a href="../../files/{name}#sha256={self.checksums[name]}">{name}</a><br/>' for name in names]
        return "text/html", ("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>").encode()


def _project(filename: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"-\d", filename)[0]).lower()


def _bounds(wanted: re.Match[str], size: int) -> tuple[int, int]:
    if wanted[1]:
        return int(wanted[1]), min(int(wanted[2] or size - 1), size - 1)
    return max(0, size - int(wanted[2])), size - 1


def _handler(index: LocalIndex) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def answer(self, status: int, body: bytes, kind: str = "application/octet-stream", **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command == "GET":
                cut = index.cut if "/files/" in self.path else 0
                self.wfile.write(body[: len(body) - cut] if cut else body)

        def do_GET(self) -> None:
            path, span = unquote(self.path), self.headers.get("Range", "")
            index.asked.append(f"{self.command} {path} {span}")
            if index.failing > 0:
                index.failing -= 1
                return self.answer(503, b"busy")
            if path.startswith("/simple/"):
                page = index.page(path.removeprefix("/simple/").strip("/"))
                return self.answer(200, page[1], page[0]) if page else self.answer(404, b"")
            time.sleep(index.slow)
            body = index.files.get(path.removeprefix("/files/"))
            if body is None:
                return self.answer(404, b"")
            wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", span)
            if not index.ranges or wanted is None:
                return self.answer(200, body)
            first, last = _bounds(wanted, len(body))
            told = f"bytes {first}-{last}/{len(body)}"
            return self.answer(206, body[first : last + 1 - index.short], Content_Range=told)

    return Handler


@pytest.fixture
def index() -> Iterator[LocalIndex]:
    served = LocalIndex()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(served))
    served.url = f"http://127.0.0.1:{server.server_address[1]}/simple/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def settings(index: LocalIndex, tmp_path: Path) -> Settings:
    return load(home=tmp_path / "home", index_url=index.url)


@pytest.fixture
def closed_port() -> str:
    """URL of an index that nobody serves."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/simple/"


def tar_bytes(entries: dict[str, bytes | tarfile.TarInfo], compression: str = "gz") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=f"w:{compression}") as file:
        for name, content in entries.items():
            if isinstance(content, tarfile.TarInfo):
                file.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return made.getvalue()


def zip_bytes(entries: dict[str, bytes], modes: dict[str, int] | None = None) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (modes or {}).get(name, 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, content)
    return made.getvalue()


@pytest.fixture
def tar() -> Callable[..., bytes]:
    return tar_bytes


@pytest.fixture
def zipped() -> Callable[..., bytes]:
    return zip_bytes


@dataclass
class Small:
    """A framework of our own: ``<project>/kernels/*.cu``, its version in a file ``VERSION``."""

    name: str = "small"
    project: str = "small"
    artifact: str = "sdist"
    repository: str = ""
    needs: tuple[object, ...] = ()

    def detect(self, root: Path) -> str | None:
        return (root / "VERSION").read_text().strip() if (root / "VERSION").is_file() else None

    def own_folders(self, root: Path) -> tuple[str, ...]:
        return ("kernels",) if (root / "kernels").is_dir() else ()

    def header_needs(self, root: Path) -> tuple[object, ...]:
        return self.needs


@pytest.fixture
def small() -> Small:
    return Small()


@pytest.fixture
def sdist() -> Callable[..., bytes]:
    """The bytes of an sdist of :class:`Small`."""

    def made(version: str, cuda: bool = True, project: str = "small") -> bytes:
        top = f"{project}-{version}"
        files = {f"{top}/VERSION": version.encode(), f"{top}/kernels/readme.md": b"x"}
        if cuda:
            files[f"{top}/kernels/scale.cu"] = KERNEL.encode()
        return tar_bytes(files)

    return made
