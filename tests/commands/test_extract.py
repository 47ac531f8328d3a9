"""``astra extract`` as a user calls it, on real source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from astra_integrate.extract.render import device_text
from astra_integrate.records import Slice

pytestmark = pytest.mark.network
ASTRA = [sys.executable, "-c", "from astra_integrate.cli import main; main()"]


@pytest.fixture
def astra(settings_, tmp_path: Path, vllm_0_33, toolchain):  # type: ignore[no-untyped-def]
    """Run a command line in an empty folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "ASTRA_HOME": str(settings_.home), "PYTHONPATH": path}
        return subprocess.run([*ASTRA, *arguments], capture_output=True, text=True, env=environment, cwd=tmp_path)

    return run


def test_an_op_is_written_with_its_source_map_and_compiles(astra, tmp_path: Path, vllm_0_33) -> None:  # type: ignore[no-untyped-def]
    done = astra("extract", vllm_0_33.spec, "silu_and_mul", "--json", "--out", "cut")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["compiled"] is True
    slice = Slice.from_json((tmp_path / "cut" / "slice.json").read_text())
    assert (tmp_path / "cut" / "kernel.cu").read_text() == device_text(slice, keep=slice.instantiations).text
    header, *rows = (tmp_path / "cut" / "source-map.tsv").read_text().splitlines()
    assert header.startswith("declaration\trole\tfile\tstart\tend")
    kernel = (tmp_path / "cut" / "kernel.cu").read_bytes()
    for row in rows:
        _, role, file, start, end, _, there, upto = row.split("\t")
        original = (Path(vllm_0_33.root) / file).read_bytes()[int(start) : int(end)]
        assert bool(there) or role in ("host", "macro", "either")
        if there:
            assert kernel[int(there) : int(upto)] == original


def test_for_people_it_ends_with_where_the_files_are(astra, tmp_path: Path, vllm_0_33) -> None:  # type: ignore[no-untyped-def]
    done = astra("extract", vllm_0_33.spec, "silu_and_mul", "--no-compile")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "written to slice-silu_and_mul: slice.json, kernel.cu, op.cu, source-map.tsv"
    assert sorted(p.name for p in (tmp_path / "slice-silu_and_mul").iterdir()) == [
        "kernel.cu",
        "op.cu",
        "slice.json",
        "source-map.tsv",
    ]


def test_an_unknown_kernel_is_one_line_with_near_names_and_leaves_nothing(astra, tmp_path: Path, vllm_0_33) -> None:  # type: ignore[no-untyped-def]
    done = astra("extract", vllm_0_33.spec, "silu_and_mull")
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("astra: vllm has no kernel or op named 'silu_and_mull' here. Did you mean silu_and_mul,")
    assert list(tmp_path.glob("slice-*")) == []
