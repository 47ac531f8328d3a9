"""``kill -9`` anywhere: the run goes on where it stopped, ends the same, and does nothing twice."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.network
KERNEL = ("vllm==0.12.0", "silu_and_mul")


def entries(folder: Path) -> list[dict]:
    """Acknowledged events of a run; a torn last line is not one."""
    journal = folder / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n") and b'"sequence"' in line]


def kill(process) -> bool:
    """SIGKILL the process with its children; False where it had ended by itself."""
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def begin(astra):
    """Start a run and wait until its folder is there."""
    before = set((astra.home / "runs").glob("[0-9]*"))
    process = astra.start("optimize", *KERNEL)
    while not (new := set((astra.home / "runs").glob("[0-9]*")) - before):
        assert process.poll() is None
        time.sleep(0.02)
    return process, new.pop()


def same_result(astra, folder: Path):
    done = astra("optimize", "--resume", folder.name, "--json")
    assert done.code == 0, done.err
    result = done.document
    keys = [event["key"] for event in entries(folder)]
    assert len(keys) == len(set(keys))
    whole = astra("optimize", *KERNEL, "--json").document
    assert (result["outcome"], result["best"]["id"]) == (whole["outcome"], whole["best"]["id"])
    assert Path(result["diff"]).read_bytes() == Path(whole["diff"]).read_bytes()
    return result


def test_killed_at_each_stage_boundary(astra, vllm_0_12, toolchain):
    process, folder = begin(astra)
    stages: list[str] = []
    kept: list[dict] = []
    while True:
        now = entries(folder)
        assert now[: len(kept)] == kept, "what was acknowledged is lost"
        fresh = [event["stage"] for event in now if event["stage"] not in stages]
        if fresh:
            stages += dict.fromkeys(fresh)
            if not kill(process):
                break
            kept = entries(folder)
            process = astra.start("optimize", "--resume", folder.name)
        elif process.poll() is not None:
            break
        time.sleep(0.02)
    assert {"slice", "planning", "coding", "lower", "compile", "check", "put back", "patched unit"} <= set(stages)
    same_result(astra, folder)


@pytest.mark.slow
def test_killed_at_twenty_random_points(astra, vllm_0_12, toolchain):
    chance = random.Random(20)
    process, folder = begin(astra)
    kept: list[dict] = []
    killed = 0
    while killed < 20:
        time.sleep(chance.uniform(0.2, 6.0))
        if not kill(process):
            process, folder = begin(astra)
            kept = []
            continue
        killed += 1
        assert entries(folder)[: len(kept)] == kept, "what was acknowledged is lost"
        kept = entries(folder)
        process = astra.start("optimize", "--resume", folder.name)
    kill(process)
    same_result(astra, folder)
