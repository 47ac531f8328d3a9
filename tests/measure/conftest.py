"""What the emulation's tests share: an op of a few lines, run on a workload of a few elements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.measure import jobs
from astra_integrate.measure.emulation.build import build
from astra_integrate.measure.jobs import Outcome
from astra_integrate.records import Workload
from astra_integrate.settings import Settings, load
from astra_integrate.toolchain.discovery import Toolchain, discover
from tests.measure.own_ops import FLAGS


@pytest.fixture(scope="session")
def emulator_settings(settings_: Settings) -> Settings:
    """The session's settings with short limits: a test that hangs is to end soon."""
    return load(home=settings_.home, worker_seconds=5.0)


@pytest.fixture(scope="session")
def host_toolchain(emulator_settings: Settings) -> Toolchain:
    found = discover(emulator_settings)
    if found.cxx is None or not found.cuda_includes:
        pytest.skip("no C++ compiler or no CUDA headers")
    return found


@pytest.fixture
def run_op(emulator_settings: Settings, host_toolchain: Toolchain, tmp_path: Path) -> Callable[..., dict[str, Outcome]]:
    """Build ``text`` and run its host function ``own`` in both orders: order → outcome."""

    def run(text: str, work: Workload, seconds: float = 5.0) -> dict[str, Outcome]:
        parameters = len(work.arguments)
        library = build(
            text, "own", [("", "")] * parameters, tmp_path / "lib", host_toolchain, emulator_settings, FLAGS
        )
        folder = tmp_path / "jobs"
        found = jobs.run(library, [work], ("forward", "reverse"), parameters, folder, emulator_settings, seconds)
        return {order: outcome for (_, order), outcome in found.items()}

    return run
