"""The whole chain as a user runs it, on real source."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from astra_integrate.records import Patch, Source

pytestmark = pytest.mark.network
DEMO = ("vllm==0.12.0", "silu_and_mul")


@pytest.fixture(scope="module")
def finished(astra, vllm_0_12: Source, toolchain):
    return astra("optimize", *DEMO, "--json")


def test_the_demo_kernel_ends_as_a_patch_that_is_correct_and_says_that_it_was_not_timed(finished):
    assert finished.code == 0, finished.err
    result = finished.document
    assert result["outcome"] == "patched"
    assert result["correctness"]["verdict"] == "correct under emulation"
    assert (
        result["timing"] == {"verdict": "not timed", "reason": "no GPU", "ratio": None, "interval": None}
        or result["timing"]["verdict"] == "not timed"
    )
    assert result["chosen_by"].startswith("chosen by static evidence, not timed: global loads")
    assert any("speed" in missing for missing in result["not_measured"])
    orders = {entry["order"] for entry in result["correctness"]["results"]}
    assert orders == {"forward", "reverse"}


def test_the_patched_unit_holds_the_candidates_code(finished):
    built = finished.document["compile"]
    assert built["ok"] and built["same_sass"] is True
    assert any("_astra_" in name for name in built["marked_kernels"])


def test_the_diff_applies_by_git_to_the_released_archive_and_changes_nothing_else(
    finished, vllm_0_12, settings_, tmp_path
):
    [archive] = (settings_.cache / "downloads").rglob("vllm-0.12.0.tar.gz")
    with tarfile.open(archive) as packed:
        # The first 3.11 releases have no filters; this archive's digest was checked.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(tmp_path, members=[m for m in packed.getmembers() if "/csrc/" in m.name], **safe)
    clean = tmp_path / "vllm-0.12.0"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false"]
    subprocess.run([*git, "init", "-q"], cwd=clean, check=True)
    subprocess.run([*git, "add", "-A", "-f"], cwd=clean, check=True)
    subprocess.run([*git, "commit", "-q", "-m", "clean"], cwd=clean, check=True)
    diff = Path(finished.document["diff"])
    subprocess.run([*git, "apply", str(diff)], cwd=clean, check=True)
    changed = subprocess.run([*git, "status", "--porcelain"], cwd=clean, check=True, capture_output=True, text=True)
    assert changed.stdout.split() == ["M", "csrc/activation_kernels.cu"]
    text = (clean / "csrc/activation_kernels.cu").read_text()
    # The launcher of the op, and of this op alone, goes to the new kernel.
    body = text[text.index("void silu_and_mul(") :]
    assert "_astra_" in body[: body.index("}")]
    other = text[text.index("void mul_and_silu(") :]
    assert "_astra_" not in other[: other.index("}")]


def test_the_patch_record_names_the_op_alone_as_its_impact(finished):
    patch = Patch.from_json(Path(finished.document["diff"]).with_name("patch.json").read_bytes())
    assert patch.impact == ("silu_and_mul",)
    assert patch.provenance.chosen_by == "static evidence, not timed"
    assert patch.provenance.author == "rules"


def test_more_than_the_machine_can_measure_is_exit_code_3(astra, finished):
    again = astra("optimize", "--resume", finished.document["run"], "--require", "gpu", "--json")
    assert again.code == 3
    assert again.document["run"] == finished.document["run"]


def test_a_finished_run_is_not_done_again(astra, finished):
    again = astra("optimize", "--resume", finished.document["run"], "--json")
    assert again.code == 0
    assert again.document == finished.document


@pytest.mark.slow
@pytest.mark.parametrize("op", ["gelu_quick", "fatrelu_and_mul", "gelu_new"])
def test_ops_that_no_document_names_end_with_a_candidate_or_a_named_reason(astra, vllm_0_12, toolchain, op):
    done = astra("optimize", "vllm==0.12.0", op, "--json")
    assert done.code in (0, 1, 3), done.err
    result = done.document
    assert result["outcome"] in ("patched", "candidate") or result["reason"]


def test_a_jit_kernel_of_sglang_ends_with_a_candidate_that_says_what_was_not_checked(astra, sglang_0_5_23, toolchain):
    done = astra("optimize", "sglang==0.5.23", "fused_add_rmsnorm", "--json")
    assert done.code == 3, done.err
    result = done.document
    assert result["outcome"] == "candidate"
    assert result["best"]["author"] == "rules"
    assert "correctness" in result["not_measured"][0]
