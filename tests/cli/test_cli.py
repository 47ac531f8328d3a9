"""How a command line ends: one line, one JSON document, the right exit code."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from astra_integrate import __version__, cli, progress
from astra_integrate.errors import BadInput, CheckFailed, FetchFailed, MissingTool, NotMeasured
from astra_integrate.records import OutputError

FOUND = OutputError(output="o", candidate=float("inf"), baseline=0.0, limit=1.0, mismatches=2)
ASTRA = [sys.executable, "-c", "from astra_integrate.cli import main; main()"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASTRA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ASTRA_DEBUG", raising=False)
    return tmp_path / "home"


def failing(failure: BaseException | Callable[[], Any]) -> Callable[[list[str]], int]:
    """What runs an application whose command ``fail`` ends that way."""
    app = typer.Typer()

    @app.callback()
    def root() -> None:
        pass

    @app.command()
    def fail(json: bool = False) -> None:
        if isinstance(failure, BaseException):
            raise failure
        failure()

    return lambda arguments: cli.run(arguments, lambda: app)


def paths(command: Any, name: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [name]
    for child, sub in getattr(command, "commands", {}).items():
        found += paths(sub, (*name, child))
    return found


ALL = paths(typer.main.get_command(cli.build()))


def test_the_commands_are_those_of_the_design() -> None:
    assert {name[0] for name in ALL if name} == set(cli.COMMANDS)


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_every_command_has_help(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*command, "--help"]) == 0
    out, err = capsys.readouterr()
    assert "Usage: " + " ".join(["astra", *command]) in out and err == ""


@pytest.mark.parametrize(
    "command", [name for name in ALL if name and name not in {("runs",), ("cache",)}], ids=" ".join
)
def test_every_command_takes_json_and_quiet(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    cli.run([*command, "--help"])
    out = capsys.readouterr().out
    assert "--json" in out and "--quiet" in out


def test_version_and_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"astra {__version__}\n"
    assert cli.run([]) == 0
    assert "Usage: astra" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "nonsense"),
        (["run"], "Did you mean 'runs'"),
        (["runs"], "`astra runs --help`"),
        (["runs", "show", "none-such"], "There is no run 'none-such'"),
        (["runs", "show", "--nonsense"], "--nonsense"),
        (["runs", "remove"], "`astra runs remove --help`"),
        (["report", "none-such"], "`astra runs list`"),
        (["cache", "clear", "nonsense"], "no kind 'nonsense'"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*arguments, "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("astra: ") and err.count("\n") == 1 and says in err

    assert cli.run([*arguments, "--quiet", "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"error", "way_out", "exit"} and document["exit"] == 2
    assert document["error"] and document["way_out"]


@pytest.mark.parametrize("arguments", [["runs", "list"], ["cache", "show"], ["cache", "clear"]], ids=" ".join)
def test_json_is_one_document_on_stdout(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*arguments, "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)
    assert cli.run(arguments) == 0
    assert not capsys.readouterr().out.startswith("{")


@pytest.mark.parametrize(
    ("error", "code"),
    [(BadInput, 2), (MissingTool, 2), (FetchFailed, 2), (CheckFailed, 1), (NotMeasured, 3)],
)
def test_our_errors_are_one_line_with_their_exit_code(
    error: Any, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = failing(error("This is\n wrong", "Do that"))
    assert run(["fail"]) == code
    assert capsys.readouterr() == ("", "astra: This is wrong. Do that\n")
    assert run(["fail", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == {"error": "This is\n wrong", "way_out": "Do that", "exit": code}
    monkeypatch.setenv("ASTRA_DEBUG", "1")
    assert run(["fail"]) == code
    err = capsys.readouterr().err
    assert "Traceback" in err and err.endswith("astra: This is wrong. Do that\n")


def test_an_error_after_the_result_is_no_second_document(capsys: pytest.CaptureFixture[str]) -> None:
    from astra_integrate.commands import output

    def fail() -> None:
        output.emit({"found": 1}, None, True)
        raise CheckFailed("It does not hold")

    run = failing(fail)
    assert run(["fail", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == {"found": 1} and err == "astra: It does not hold\n"


def test_what_a_library_prints_does_not_spoil_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    from astra_integrate.commands import output

    def fail() -> None:
        print("a banner")
        output.emit({"found": float("nan"), "text": "\udcff", "where": Path("/a"), "result": FOUND}, None, True)

    run = failing(fail)
    assert run(["fail", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["found"], document["text"], document["where"]) == ("nan", "\udcff", "/a") and "a banner" in err
    assert document["result"] == {"output": "o", "candidate": "inf", "baseline": 0.0, "limit": 1.0, "mismatches": 2}


def test_an_unforeseen_error_is_kept_in_a_file(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    run = failing(KeyError("lost"))
    assert run(["fail"]) == 1
    out, err = capsys.readouterr()
    (kept,) = (home / "crashes").iterdir()
    assert out == "" and err == f"astra: Internal error: KeyError: 'lost'. Please report it and attach {kept}\n"
    assert "Traceback" in kept.read_text() and "KeyError" in kept.read_text() and __version__ in kept.read_text()


def test_an_unforeseen_error_is_reported_even_without_a_home(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    home.write_text("a file")
    run = failing(KeyError("lost"))
    assert run(["fail"]) == 1
    kept = Path(capsys.readouterr().err.split()[-1])
    assert "KeyError" in kept.read_text()
    kept.unlink()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_what_the_machine_refuses_is_no_crash(number: int, capsys: pytest.CaptureFixture[str], home: Path) -> None:
    def fail() -> None:
        try:
            raise OSError(number, os.strerror(number), "/some/file")
        except OSError as error:
            raise RuntimeError("while doing something") from error

    run = failing(fail)
    assert run(["fail"]) == 2
    assert "/some/file" in capsys.readouterr().err and not (home / "crashes").exists()


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ASTRA_JOBS", "many")
    assert cli.run(["runs", "list"]) == 2
    assert "ASTRA_JOBS" in capsys.readouterr().err
    monkeypatch.setenv("ASTRA_JOBS", "2")
    monkeypatch.setenv("ASTRA_ARCH", "hopper")
    assert cli.run(["runs", "list"]) == 2
    assert "'hopper' is no GPU architecture" in capsys.readouterr().err


def test_quiet_silences_progress_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["cache", "clear"]) == 0
    out, err = capsys.readouterr()
    assert "freed" in out and "Clearing" in err
    assert cli.run(["cache", "clear", "--quiet"]) == 0
    again, err = capsys.readouterr()
    assert again == out and err == ""
    assert cli.run(["--version"]) == 0 and not progress.console.quiet


def test_control_c_is_130_and_one_line(tmp_path: Path) -> None:
    code = (
        "import sys, time, astra_integrate.cli as cli, typer\n"
        "app = typer.Typer()\n"
        "@app.callback()\n"
        "def root(): pass\n"
        "@app.command()\n"
        "def wait():\n"
        "    print('waiting', flush=True)\n"
        "    time.sleep(60)\n"
        "sys.exit(cli.run(['wait'], lambda: app))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and err == "astra: Interrupted\n"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    process = subprocess.Popen([*ASTRA, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait() in (0, 1)
    process.stderr.close()


def test_shell_completion_completes_commands() -> None:
    environment = {**os.environ, "_ASTRA_COMPLETE": "complete_bash", "COMP_WORDS": "astra ru", "COMP_CWORD": "1"}
    process = subprocess.run(ASTRA, env=environment, capture_output=True, text=True, check=False)
    assert process.stdout.split() == ["runs"]


def test_start_up_is_fast_and_loads_no_heavy_library() -> None:
    code = (
        "import sys; from astra_integrate.cli import build; build()\n"
        "print([m for m in ('clang', 'numpy', 'openai', 'jinja2', 'git', 'sqlite3', 'pydantic_settings') "
        "if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"

    def cpu_seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*ASTRA, "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, the best of some: other work on the machine must not decide.
    assert min(cpu_seconds() for _ in range(3)) < 0.5
