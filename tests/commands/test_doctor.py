from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ASTRA = [sys.executable, "-c", "from astra_integrate.cli import main; main()"]


def astra(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASTRA_")}
    return subprocess.run([*ASTRA, *arguments], capture_output=True, text=True, env={**kept, **environment})


def test_a_machine_without_git_and_compiler_exits_2_with_one_document(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = astra(
        "doctor", "--json", "--no-fetch", PATH=str(tmp_path / "bin"), ASTRA_HOME=str(tmp_path / "h"), ASTRA_OFFLINE="1"
    )
    document = json.loads(done.stdout)
    states = {check["name"]: check["state"] for check in document["checks"]}
    assert done.returncode == 2
    assert document["ready"] is False
    assert (states["python"], states["git"], states["c++"]) == ("ok", "missing", "missing")
    assert document["machine"]["cores"] >= 1


def test_the_table_ends_with_what_mends_and_whether_it_can_run(tmp_path: Path) -> None:
    done = astra("doctor", "--no-fetch", ASTRA_HOME=str(tmp_path), ASTRA_OFFLINE="1", ASTRA_API_KEY="sk-hidden")
    assert "package index: Unset ASTRA_OFFLINE" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("astra can")
    assert "sk-hidden" not in done.stdout + done.stderr


def test_a_wrong_setting_is_one_line(tmp_path: Path) -> None:
    done = astra("doctor", ASTRA_HOME=str(tmp_path), ASTRA_CXX="no-such-compiler")
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("astra: ASTRA_CXX names 'no-such-compiler'")
