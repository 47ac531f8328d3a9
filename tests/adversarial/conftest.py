"""The gate, ready to judge a candidate against an honest op."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from astra_integrate.measure.gate import Op, check_text
from astra_integrate.records import Correctness, Workload
from astra_integrate.settings import Settings, load
from astra_integrate.toolchain.discovery import discover


@pytest.fixture
def gate(settings_: Settings) -> Callable[[Op, str, tuple[Workload, ...]], Correctness]:
    settings = load(home=settings_.home, worker_seconds=10.0)
    toolchain = discover(settings)
    if toolchain.cxx is None or not toolchain.cuda_includes:
        pytest.skip("no C++ compiler or no CUDA headers")
    return lambda op, candidate, workloads: check_text(op, candidate, workloads, settings, toolchain)
