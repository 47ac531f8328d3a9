"""``astra reinject``: a run's candidate into the framework's source, and out again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from astra_integrate.errors import BadInput, CheckFailed

from . import output
from .options import JsonOption, QuietOption, RunArgument, settings_from

if TYPE_CHECKING:
    from astra_integrate.records import Candidate, Slice, UnitCompile
    from astra_integrate.reinject.put import Prepared
    from astra_integrate.settings import Settings


def register(app: typer.Typer) -> None:
    """Add ``reinject``."""
    app.command()(reinject)


def reinject(
    run: RunArgument = "last",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where to: a folder that isn't there becomes a git-tracked copy of the source; "
            "one that is there must hold that source and is edited in place. Default: the run's own copy.",
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only tell whether the edits fit; write nothing.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the edits back, byte for byte.")] = False,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Also compile the patched unit and look into it.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Put the candidate that a run chose into the framework's source, in place or as a copy with its diff."""
    from astra_integrate.reinject import put

    if check and undo:
        raise BadInput("--check and --undo exclude each other", "Give one of them")
    settings = settings_from()
    folder, slice, candidate = _records(run, settings)
    target = (out or folder / "framework").absolute()
    journal = put.journal_of(folder, target)
    document: dict[str, Any] = {"run": folder.name, "candidate": candidate.id, "folder": target}
    prepared = put.prepare(slice, candidate)
    if undo:
        back = put.take_back(prepared, target, journal)
        state = "undone" if back.files else "nothing to undo"
        document |= {"state": state, "files": back.files}
        output.emit(document, f"{state}: {', '.join(back.files or back.already)} in {target}", json)
        return
    if not prepared.impact.alone:
        raise CheckFailed(f"The edits reach more than {slice.op}: {prepared.impact.summary}")
    document |= {"impact": prepared.impact.ops, "marker": prepared.lowering.marker}
    if check:
        _check(prepared, target, document, json)
        return
    applied, diff = put.put(prepared, target, journal)
    state = "applied" if applied.files else "already applied"
    lines = [f"{applied.summary} in {target}", f"impact: {prepared.impact.summary}"]
    document |= {"state": state, "files": applied.files, "already": applied.already, "diff": diff, "compile": None}
    if diff:
        lines.append("the diff applies with git apply to a clean copy")
    if compile_:
        built = _compile(prepared, target, folder, settings)
        document["compile"] = built
        lines.append(f"{built.unit}: {built.detail if built.ok else built.error}")
    output.emit(document, "\n".join(lines), json)
    if compile_ and not (built.ok and built.same_sass):
        raise typer.Exit(1)


def _records(run: str, settings: Settings) -> tuple[Path, Slice, Candidate]:
    """The run's folder and what it holds; ``run`` may also be a folder with the two records in it."""
    from pydantic import ValidationError

    from astra_integrate.records import Candidate, Slice
    from astra_integrate.store import Store

    folder = Path(run)
    if not (folder / "slice.json").is_file():
        with Store(settings.home) as store, store.open(run, write=False) as opened:
            folder = opened.folder
    texts: dict[str, bytes] = {}
    for name in ("slice", "candidate"):
        try:
            texts[name] = (folder / f"{name}.json").read_bytes()
        except FileNotFoundError as error:
            raise BadInput(
                f"{folder.name} holds no {name}.json: it has not chosen a candidate", "`astra runs show` tells why"
            ) from error
    try:
        return folder.absolute(), Slice.from_json(texts["slice"]), Candidate.from_json(texts["candidate"])
    except ValidationError as error:
        raise BadInput(f"A record in {folder} can't be read: {error.errors()[0]['msg']}", "Run it again") from error


def _check(prepared: Prepared, target: Path, document: dict[str, Any], json: bool) -> None:
    from astra_integrate.reinject.apply import apply

    root = target if target.exists() else Path(prepared.slice.source.root)
    planned = apply(root, prepared.edits, dry_run=True)
    state = "fits" if planned.files else "already applied"
    files = ", ".join(planned.files or planned.already)
    document |= {"state": state, "files": planned.files, "already": planned.already}
    output.emit(document, f"{state}: {files} in {root}\nimpact: {prepared.impact.summary}", json)


def _compile(prepared: Prepared, target: Path, folder: Path, settings: Settings) -> UnitCompile:
    from astra_integrate.putback import compile_patched
    from astra_integrate.toolchain.discovery import discover, require

    toolchain = discover(settings)
    require(toolchain, "nvcc", "cuobjdump")
    return compile_patched(prepared.slice, prepared.lowering, target, folder / "unit", settings, toolchain)
