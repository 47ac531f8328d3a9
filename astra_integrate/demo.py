"""``make demo``: the whole chain on real source, then what the rules say to upstream's own later version of it."""

from __future__ import annotations

import sys
import time
import tomllib
from importlib.resources import files
from typing import Annotated

import typer

from . import cli, pipeline
from .agents.models.rules import RulesModel
from .commands import output
from .commands.options import Require, exit_code, settings_from
from .records import Record
from .report import summary
from .settings import Settings
from .store import Store


class Survey(Record):
    """What each strategy of the rules makes of a slice: changes, and places left as they are with the reason.

    ``seconds`` is the wall time from the source's name to here, downloads included.
    """

    source: str
    kernel: str
    changes: tuple[str, ...]
    declined: tuple[str, ...]
    seconds: float


def survey(spec: str, kernel: str, settings: Settings) -> Survey:
    """Read ``kernel`` of ``spec`` with every strategy, without compiling or changing anything."""
    begun = time.monotonic()
    source, target = pipeline.locate(spec, kernel, settings)
    cut, toolchain = pipeline.cut_out(source, target, settings)
    rules = RulesModel(toolchain)
    found = {strategy: rules.propose(cut, strategy) for strategy in rules.strategies}
    return Survey(
        source=cut.source.spec,
        kernel=cut.op or cut.kernel.name,
        changes=tuple(f"{name}: {change}" for name, proposal in found.items() for change in proposal.changes),
        declined=tuple(dict.fromkeys(f"{n}: {why}" for n, proposal in found.items() for why in proposal.declined)),
        seconds=round(time.monotonic() - begun, 3),
    )


def demo(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Optimise the demo's kernel, survey its successor, print the ten-line summary and where to read on."""
    data = tomllib.loads((files("astra_integrate") / "frameworks" / "demo.toml").read_text(encoding="utf-8"))
    settings = settings_from()
    result = pipeline.start(data["optimize"]["source"], data["optimize"]["kernel"], settings)
    later = survey(data["survey"]["source"], data["survey"]["kernel"], settings)
    with Store(settings.home) as store, store.open(result.run, write=False) as run:
        lines = summary(result, run.events())
    told = [f"What rules say to {later.kernel} of {later.source}:"]
    told += [f"  nothing to change: {why}" for why in later.declined] or ["  nothing was declined"]
    told += [f"  would change: {change}" for change in later.changes]
    output.emit({"result": result, "survey": later}, "\n".join([*told, "", *lines]), json)
    code = exit_code(result, Require.emulated)
    if code:
        raise typer.Exit(code)


def main() -> None:
    """Entry of ``python -m astra_integrate.demo``; errors end as they do for every command."""

    def application() -> typer.Typer:
        app = typer.Typer(pretty_exceptions_enable=False)
        app.command()(demo)
        return app

    sys.exit(cli.run(sys.argv[1:], application))


if __name__ == "__main__":
    main()
