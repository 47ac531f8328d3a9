"""The ``astra`` command: registers the commands and turns every ending into one line and an exit code."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from . import __version__
from .commands import output
from .errors import AstraError, BadInput

COMMANDS = ("doctor", "index", "extract", "optimize", "reinject", "report", "runs", "cache")

INTERRUPTED = 130

# typer brings its own copy of click or uses the installed one, by version: both are reached through its public name.
_USAGE: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

# What the machine refuses, and the way out of it; anything else an OSError says is a bug of ours.
_REFUSALS = {
    errno.ENOSPC: (
        "No space left on the disk",
        "Free some space or set ASTRA_HOME to a larger disk, then run it again",
    ),
    errno.EDQUOT: ("The disk quota is used up", "Free some space or set ASTRA_HOME to another disk, then run it again"),
    errno.EFBIG: ("A file may not grow further", "Raise the file size limit (ulimit -f), then run it again"),
    errno.EROFS: ("The file system is read-only", "Set ASTRA_HOME to a folder that can be written"),
    errno.EACCES: ("No permission", "Set ASTRA_HOME to a folder that can be written, or mend its permissions"),
}


def build() -> typer.Typer:
    """The typer application with every command registered."""
    app = typer.Typer(
        name="astra",
        help="Take a GPU kernel out of vLLM or SGLang, make it faster, put it back, prove what it bought.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def root(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
    ) -> None:
        if version:
            typer.echo(f"astra {__version__}")
            raise typer.Exit
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())
            raise typer.Exit

    for name in COMMANDS:
        module = f"{__package__}.commands.{name}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module).register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Console entry: runs the command and leaves with 0, 1 (check failed), 2 (input), 3 (not measured) or 130."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str], application: Callable[[], typer.Typer] = build) -> int:
    """Run one command line and return its exit code; errors are one line (or one JSON document)."""
    given = arguments[: arguments.index("--")] if "--" in arguments else arguments
    json_mode = "--json" in given and not {"--help", "-h"} & set(given)
    output.begin(quiet=bool({"--quiet", "-q"} & set(given)))
    try:
        if json_mode:
            # A library that prints must not spoil the one document on stdout.
            with redirect_stdout(sys.stderr):
                code = application()(args=arguments, prog_name="astra", standalone_mode=False)
        else:
            code = application()(args=arguments, prog_name="astra", standalone_mode=False)
        if code == INTERRUPTED:
            # What typer makes of Ctrl-C.
            output.fail("Interrupted", "", INTERRUPTED, json_mode)
        return code if isinstance(code, int) else 0
    except AstraError as error:
        return _fail(error, json_mode)
    except _USAGE as error:
        return _fail(_usage(error), json_mode)
    except (KeyboardInterrupt, typer.Abort):
        output.fail("Interrupted", "", INTERRUPTED, json_mode)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader left (`astra … | head`): nothing to say, and the flush at exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the edge of the process: reported, kept in a file, exit 1
        refusal = _refusal(error)
        return _fail(refusal, json_mode) if refusal else _crash(error, json_mode)


def _fail(error: AstraError, json_mode: bool) -> int:
    if _debug():
        traceback.print_exception(error, file=sys.stderr)
    output.fail(error.message, error.way_out, error.exit_code, json_mode)
    return error.exit_code


def _debug() -> bool:
    # Not a field of Settings: it must work where the settings are what is wrong.
    return os.environ.get("ASTRA_DEBUG", "") not in ("", "0")


def _usage(error: Exception) -> AstraError:
    """The usage error that typer found, as one of ours that names the right ``--help``."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "astra"
    text = " ".join(getattr(error, "format_message", error.__str__)().split()).rstrip(".")
    return BadInput(text, f"`{command} --help` shows what it takes")


def _refusal(error: BaseException | None) -> AstraError | None:
    """What the machine refused (disk full, no permission), when that is the cause of ``error``."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _REFUSALS:
            message, way_out = _REFUSALS[error.errno]
            return BadInput(f"{message}: {error.filename}" if error.filename else message, way_out)
        error = error.__cause__
    return None


def _crash(error: Exception, json_mode: bool) -> int:
    """Keep the traceback of an error that nobody foresaw in a file and name it."""
    if _debug():
        traceback.print_exception(error, file=sys.stderr)
    trace = "".join(traceback.format_exception(error))
    path = _keep(f"astra {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n\n{trace}")
    what = " ".join(f"{type(error).__name__}: {error}".split())
    output.fail(f"Internal error: {what[:300]}", f"Please report it and attach {path}", 1, json_mode)
    return 1


def _keep(text: str) -> Path:
    """Write a crash report under the home folder, or in the temporary folder where that can't be written."""
    from .settings import load

    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    try:
        folder = load().home / "crashes"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")
        return folder / name
    except (AstraError, OSError):
        path = Path(tempfile.gettempdir()) / f"astra-crash-{name}"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return path
