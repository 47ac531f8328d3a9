"""``resolve`` with the frameworks that astra knows."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import astra_integrate
from astra_integrate.errors import BadInput
from astra_integrate.settings import load
from astra_integrate.sources import parse_spec, resolve


@pytest.fixture
def tiny_vllm(tar):
    """An sdist that looks like vLLM's."""

    def made(version: str) -> bytes:
        top = f"vllm-{version}"
        files = {
            "PKG-INFO": f"Name: vllm\nVersion: {version}\n",
            "vllm/__init__.py": "",
            "csrc/x.cu": "__global__ void x() {}",
        }
        return tar({f"{top}/{name}": text.encode() for name, text in files.items()})

    return made


def test_parse_spec_knows_the_frameworks():
    assert parse_spec("vllm==0.12.0").framework == "vllm"
    with pytest.raises(BadInput, match="Did you mean sglang"):
        parse_spec("sglan==1.0")


def test_a_release_a_path_and_an_archive_of_it(index, settings, tiny_vllm, tmp_path):
    index.add("vllm-0.12.0.tar.gz", tiny_vllm("0.12.0"))
    index.add("vllm-0.11.0.tar.gz", tiny_vllm("0.11.0"))
    source = resolve("vllm==0.12.0", settings)
    assert (source.framework, source.version, source.kind) == ("vllm", "0.12.0", "sdist")
    assert resolve("vllm", settings).root == source.root
    tree = resolve(source.root, settings)
    assert (tree.framework, tree.version, tree.kind, tree.root) == ("vllm", "0.12.0", "path", source.root)
    (tmp_path / "vllm.tar.gz").write_bytes(tiny_vllm("0.12.0"))
    assert resolve(str(tmp_path / "vllm.tar.gz"), settings).content == source.content


def test_unknown_version_and_wheel_only_version(index, settings, tiny_vllm, zipped):
    index.add("vllm-0.12.0.tar.gz", tiny_vllm("0.12.0"))
    index.add("vllm-0.13.0-cp38-abi3-manylinux1_x86_64.whl", zipped({"vllm/__init__.py": b""}))
    with pytest.raises(BadInput, match=r"vllm 0\.12\.1 is not on the package index.*Near: 0\.12\.0"):
        resolve("vllm==0.12.1", settings)
    with pytest.raises(BadInput, match=r"vllm 0\.13\.0 has no sdist on the package index, only: wheel"):
        resolve("vllm==0.13.0", settings)


def test_an_unused_git_is_not_needed(index, settings, tiny_vllm):
    index.add("vllm-0.12.0.tar.gz", tiny_vllm("0.12.0"))
    code = (
        "import sys; from astra_integrate.settings import load; from astra_integrate.sources import resolve\n"
        "print(resolve('vllm==0.12.0', load(home=sys.argv[1], index_url=sys.argv[2])).version, 'git' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, settings.home, index.url],
        env={"PATH": "/nowhere", "PYTHONPATH": str(Path(astra_integrate.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert ran.stdout == "0.12.0 False\n", ran.stderr


@pytest.mark.network
def test_the_real_release_resolves_and_then_needs_no_network(vllm_0_12, settings_, closed_port):
    assert (vllm_0_12.version, vllm_0_12.kind) == ("0.12.0", "sdist")
    assert vllm_0_12.content == "dc2863be80260f378f1e72f9b82b4009610e434d05fdd7067383b231b89c4f4a"
    assert (Path(vllm_0_12.root) / "csrc/activation_kernels.cu").is_file()
    alone = load(home=settings_.home, index_url=closed_port)
    started = time.monotonic()
    assert resolve("vllm==0.12.0", alone) == vllm_0_12
    assert time.monotonic() - started < 0.5
