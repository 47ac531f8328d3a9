"""``astra extract``: cut one op or kernel out of a framework, with its source map, and compile it alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .options import ArchOption, JsonOption, QuietOption, SourceArgument, settings_from

if TYPE_CHECKING:
    from rich.console import RenderableType

    from astra_integrate.extract.render import Rendered
    from astra_integrate.records import Slice
    from astra_integrate.settings import Settings
    from astra_integrate.toolchain.discovery import Toolchain

_COLUMNS = ("declaration", "role", "file", "start", "end", "sha256", "kernel.cu start", "kernel.cu end")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(extract)


def extract(
    source: SourceArgument,
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help="Op or kernel, as the framework names it.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where the files go. Default: ./slice-KERNEL.")
    ] = None,
    compile_: Annotated[
        bool, typer.Option("--compile/--no-compile", help="Compile the device code by itself with nvcc.")
    ] = True,
    arch: ArchOption = None,
    json_mode: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Cut KERNEL out of SOURCE: one file of device code, one of the whole op, and the way back.

    Exit code 1 when the device code doesn't compile by itself, 2 when there is no such kernel.
    """
    from astra_integrate import frameworks
    from astra_integrate.extract import render
    from astra_integrate.extract.slicing import make_slice
    from astra_integrate.sources import resolve
    from astra_integrate.targets import choose
    from astra_integrate.toolchain.discovery import discover, require

    settings = settings_from(arch=arch)
    found = resolve(source, settings)
    target = choose(frameworks.get(found.framework), Path(found.root), kernel)
    toolchain = discover(settings)
    if compile_:
        require(toolchain, "nvcc")
    slice = make_slice(found, target, settings, toolchain)
    device = render.device_text(slice, keep=slice.instantiations)
    folder = out or Path(f"slice-{kernel.rsplit('::', 1)[-1]}")
    _write(folder, slice, device, render.op_text(slice))
    error = _compile_error(slice, device, settings, toolchain) if compile_ else None
    output.emit(
        _document(slice, device, folder, error, compile_), _shown(slice, device, folder, error, compile_), json_mode
    )
    if error is not None:
        raise typer.Exit(1)


def _compile_error(slice: Slice, device: Rendered, settings: Settings, toolchain: Toolchain) -> str | None:
    """None where nvcc takes the device code, else its first errors."""
    from astra_integrate.measure.compile import CompileError, cubin
    from astra_integrate.progress import step

    try:
        with step(f"Compiling {slice.kernel.name} by itself"):
            cubin(device.text, slice.flags, slice.arch, toolchain, settings.cache / "cubins")
    except CompileError as error:
        return "\n".join((error.message, *error.errors))
    return None


def _write(folder: Path, slice: Slice, device: Rendered, op: Rendered) -> None:
    table = "\n".join("\t".join(row) for row in (_COLUMNS, *_rows(slice, device))) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("slice.json", slice.to_json()),
        ("kernel.cu", device.text),
        ("op.cu", op.text),
        ("source-map.tsv", table),
    ):
        # Whole or not at all: a half-written file of an earlier run would be read as the slice.
        part = folder / f".{name}.part"
        part.write_bytes(text.encode("utf-8", "surrogateescape"))
        os.replace(part, folder / name)


def _rows(slice: Slice, device: Rendered) -> list[tuple[str, ...]]:
    """The source map: where each declaration is in the framework and in kernel.cu ("" where it isn't there)."""
    spans = {span.id: (str(span.start), str(span.end)) for span in device.spans}
    return [
        (
            declaration.id,
            declaration.role,
            declaration.extent.file,
            str(declaration.extent.start),
            str(declaration.extent.end),
            declaration.extent.bytes_digest,
            *spans.get(declaration.id, ("", "")),
        )
        for declaration in slice.declarations
    ]


def _document(slice: Slice, device: Rendered, folder: Path, error: str | None, compiled: bool) -> dict[str, Any]:
    return {
        "source": slice.source,
        "unit": slice.unit,
        "arch": slice.arch,
        "op": slice.op,
        "kernel": slice.kernel.name,
        "host_function": slice.host_function,
        "closure_hash": slice.closure_hash,
        "launcher_digest": slice.launcher_digest,
        "instantiations": slice.instantiations,
        "launches": slice.launches,
        "source_map": [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(slice, device)],
        "notes": slice.notes,
        "assumed": slice.flags.assumed,
        "compiled": error is None if compiled else None,
        "error": error,
        "folder": str(folder.resolve()),
    }


def _shown(slice: Slice, device: Rendered, folder: Path, error: str | None, compiled: bool) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    rows = [
        (row[0], row[1], f"{row[3]}–{row[4]}", row[5][:12], f"{row[6]}–{row[7]}" if row[6] else "")
        for row in _rows(slice, device)
    ]
    lines = [
        f"{slice.op or slice.kernel.name} out of {slice.source.spec}: {slice.kernel.name}, {slice.unit}, {slice.arch}",
        f"{len(slice.declarations)} declarations, {device.text.count(chr(10))} lines of device code, "
        f"{len(slice.instantiations)} instantiations, {len(slice.launches)} launch sites",
        *(f"note: {note}" for note in slice.notes),
    ]
    if compiled:
        lines.append(f"does not compile: {error}" if error is not None else "compiles by itself")
    lines.append(f"written to {folder}: slice.json, kernel.cu, op.cu, source-map.tsv")
    table = output.table("declaration", "role", ">bytes in the file", "sha256", ">bytes in kernel.cu", rows=rows)
    return Group(table, *(Text(line) for line in lines))
