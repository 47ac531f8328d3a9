"""Options become settings, and a run's result an exit code."""

from __future__ import annotations

import pytest

from astra_integrate.commands.options import Require, exit_code, settings_from
from astra_integrate.errors import BadInput
from astra_integrate.records import Correctness, RunResult, Timing


def test_only_options_that_were_given_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTRA_ARCH", "sm_80")
    monkeypatch.setenv("ASTRA_JOBS", "3")
    settings = settings_from(arch=None, jobs=7, gpu=None)
    assert (settings.arch, settings.jobs, settings.gpu) == ("sm_80", 7, None)
    assert settings_from(arch="sm_100f").arch == "sm_100f"


@pytest.mark.parametrize("arch", ["hopper", "90", "sm_9", "sm_90b", "compute_90", ""])
def test_an_architecture_is_checked(arch: str) -> None:
    with pytest.raises(BadInput, match="no GPU architecture"):
        settings_from(arch=arch)


def result(outcome: str, correctness: str | None = None, timing: str = "not timed") -> RunResult:
    return RunResult(
        run="r",
        source="s",
        kernel="k",
        op=None,
        arch="sm_90a",
        model="rules",
        outcome=outcome,
        correctness=Correctness(verdict=correctness) if correctness else None,
        timing=Timing(verdict=timing),
    )


@pytest.mark.parametrize(
    ("found", "require", "code"),
    [
        (result("patched", "correct under emulation"), None, 0),
        (result("patched", "correct under emulation"), Require.emulated, 0),
        (result("patched", "correct under emulation"), Require.gpu, 3),
        (result("patched", "correct on GPU", "faster"), Require.gpu, 0),
        (result("patched", "correct on GPU", "void"), Require.gpu, 3),
        (result("patched", "correct on GPU", "faster"), Require.e2e, 3),
        (result("candidate", "not run"), Require.emulated, 3),
        (result("nothing to change"), Require.gpu, 0),
        (result("no correct candidate", "wrong"), None, 1),
        (result("failed"), Require.gpu, 1),
    ],
)
def test_exit_code(found: RunResult, require: Require | None, code: int) -> None:
    assert exit_code(found, require) == code
