"""Cut an op (host function, launchers, kernels, all they reach) or a kernel alone out of its framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clang.cindex import CursorKind

from astra_integrate import frameworks
from astra_integrate.errors import BadInput, CheckFailed
from astra_integrate.extract import instantiation, parsing
from astra_integrate.extract.closure import piece, reach
from astra_integrate.extract.declarations import Found, OwnFiles, cursor_role, declarations
from astra_integrate.extract.extents import conditions_around
from astra_integrate.extract.includes import OUTSIDE_NAMESPACES, outside_includes
from astra_integrate.extract.instantiation import Instantiation
from astra_integrate.extract.kernel_record import kernel_record
from astra_integrate.extract.kernels import kernels as kernel_records
from astra_integrate.extract.launches import launches
from astra_integrate.extract.lexing import identifiers
from astra_integrate.extract.parsing import Unit, clang_arguments
from astra_integrate.frameworks.base import Target
from astra_integrate.progress import step
from astra_integrate.records import CompileFlags, Declaration, Launch, Slice, Source
from astra_integrate.settings import Settings
from astra_integrate.sources.headers import header_includes

if TYPE_CHECKING:
    from astra_integrate.toolchain.discovery import Toolchain

_FUNCTIONS = {CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE}
_CLASSES = {CursorKind.CLASS_TEMPLATE, CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL}
_METHODS = {CursorKind.CXX_METHOD, CursorKind.FUNCTION_TEMPLATE}


@dataclass(frozen=True)
class Parsed:
    """One unit read, with what it takes to read it again with more text."""

    source: Source
    unit: str
    arch: str
    flags: CompileFlags
    tree: Unit
    own: OwnFiles
    found: tuple[Found, ...]
    parse: Callable[[str], Unit]


def make_slice(source: Source, target: Target, settings: Settings, toolchain: Toolchain) -> Slice:
    """The slice of ``target``, out of the first of its units that holds the host function and reaches a kernel.

    Raises:
        BadInput: no unit holds the target, or it reaches no kernel there.
        CheckFailed: a fatal message of the parser: what it returns then is not to be trusted.
    """
    framework = frameworks.get(source.framework)
    root = Path(source.root)
    headers = header_includes(framework, root, settings)
    name = target.op or target.kernel or ""
    reasons: list[str] = []
    for unit in target.units:
        flags = framework.flags(root, unit, settings.arch)
        with step(f"Parsing {unit}"):
            parsed = read_unit(
                source, unit, settings.arch, flags, toolchain, headers=headers, own_folders=framework.own_folders(root)
            )
        try:
            return cut_slice(parsed, target)
        except BadInput as error:
            reasons.append(error.message)
    if not target.units:
        reasons.append(f"no translation unit of {source.spec} holds it")
    raise BadInput(f"{name!r} can't be sliced: {'; '.join(reasons)}", "`astra index` lists what can")


def read_unit(
    source: Source,
    unit: str,
    arch: str,
    flags: CompileFlags,
    toolchain: Toolchain,
    *,
    headers: Sequence[Path] = (),
    own_folders: Sequence[str] = ("",),
) -> Parsed:
    """Parse one unit of ``source`` and find its own declarations; raises CheckFailed on a fatal message."""
    root = Path(source.root).resolve()
    arguments = clang_arguments(toolchain, flags, arch, root=root, headers=headers)
    tree = parsing.parse(root / unit, arguments)
    if tree.fatal:
        cause = tree.cause.text if tree.cause else "unknown"
        raise CheckFailed(f"{unit} can't be read: {cause}", "`astra doctor` shows which headers are missing")
    own = OwnFiles.of(root, own_folders)
    everywhere = (*flags.system_include_dirs, *(str(folder) for folder in headers))
    return Parsed(
        source=source,
        unit=unit,
        arch=arch,
        # A slice leaves its source behind: the outside headers must be found without it.
        flags=flags.model_copy(update={"system_include_dirs": tuple(str(root / folder) for folder in everywhere)}),
        tree=tree,
        own=own,
        found=declarations(tree, own),
        parse=lambda text: parsing.parse(root / unit, arguments, text=text),
    )


def cut_slice(parsed: Parsed, target: Target) -> Slice:
    """The slice of ``target`` out of a unit that has been read; raises BadInput where it isn't in it."""
    hosts = _hosts(parsed, target.host_function) if target.host_function else ()
    roots = hosts or _kernels_and_launchers(parsed.found, target.kernel or target.op or "")
    if not roots or (target.host_function and not hosts):
        missing = target.host_function or target.kernel or target.op
        raise BadInput(f"{parsed.unit} doesn't define {missing}", "`astra index` lists what it defines")
    chosen = _reached(parsed.found, roots, target)
    kernels = [f for f in chosen if f.declaration.is_kernel]
    if not kernels:
        raise BadInput(f"{target.op or target.kernel} reaches no kernel in {parsed.unit}", "It has none to improve")
    concrete, how = _instantiations(parsed, hosts, chosen, target)
    kernel = _shown(kernels, concrete, target.kernel)
    concrete = tuple(sorted(concrete, key=lambda i: i.declaration != kernel.declaration.id))
    return Slice(
        source=parsed.source,
        unit=parsed.unit,
        arch=parsed.arch,
        kernel=next(iter(kernel_records((kernel,), parsed.unit)), kernel_record(kernel, parsed.unit)),
        op=target.op,
        host_function=target.host_function,
        host_signature=_signature(hosts[0], target.host_function or "") if hosts else (),
        declarations=tuple(f.declaration for f in chosen),
        includes=outside_includes(_outside_headers(parsed), [Path(f) for f in parsed.flags.system_include_dirs]),
        instantiations=tuple(i.text for i in concrete),
        launches=_launches(parsed, chosen),
        flags=parsed.flags,
        notes=(*_notes(parsed, chosen), *how),
    )


def _hosts(parsed: Parsed, name: str) -> tuple[Found, ...]:
    """Definitions of the host function ``name`` (may be qualified), the unit's own file first.

    A name such as ``Class::method`` leads to the class that defines the method.
    """
    *outer, simple = name.split("::")
    hosts = [f for f in parsed.found if _defines(f, simple) and _ends_with(f.declaration.namespaces, outer)]
    if not hosts and outer:
        hosts = [
            f
            for f in parsed.found
            if outer[-1] in f.declaration.names
            and _ends_with(f.declaration.namespaces, outer[:-1])
            and any(_method(c, simple) is not None for c in f.cursors)
        ]
    return tuple(sorted(hosts, key=lambda f: f.declaration.extent.file != parsed.unit))


def _defines(found: Found, name: str) -> bool:
    """Whether it defines a host function ``name``; one macro call may make it together with its kernel."""
    return any(
        c.kind in _FUNCTIONS and c.spelling == name and c.is_definition() and cursor_role(c) != "device"
        for c in found.cursors
    )


def _ends_with(namespaces: tuple[str, ...], outer: Sequence[str]) -> bool:
    return not outer or namespaces[-len(outer) :] == tuple(outer)


def _method(cursor: Any, name: str) -> Any:
    """The method ``name`` of a class (template); None where the cursor is no class or has none."""
    if cursor.kind not in _CLASSES:
        return None
    methods = (c for c in cursor.get_children() if c.kind in _METHODS and c.spelling == name)
    return next(methods, None)


def _kernels_and_launchers(found: Sequence[Found], name: str) -> tuple[Found, ...]:
    """The kernels called ``name`` and every host declaration that mentions one, itself or through macros."""
    simple = name.split("::")[-1]
    kernels = tuple(f for f in found if f.declaration.is_kernel and simple in f.declaration.names)
    if not kernels:
        return ()
    spellings = {simple}
    macros = [f.declaration for f in found if f.declaration.role == "macro"]
    while True:
        more = {m.names[0] for m in macros if identifiers(m.text) & spellings} - spellings
        if not more:
            break
        spellings |= more
    launchers = (f for f in found if f.declaration.role == "host" and identifiers(f.declaration.text) & spellings)
    return (*kernels, *launchers)


def _reached(found: Sequence[Found], roots: Sequence[Found], target: Target) -> list[Found]:
    pieces = []
    wanted = {f.declaration.id for f in roots}
    for f in found:
        d = f.declaration
        # For a kernel alone, the other kernels that its launchers' files hold are not asked for.
        other = target.host_function is None and d.is_kernel and d.id not in wanted
        pieces.append(piece(d, barred=other or _registers(d)))
    keys = reach(pieces, [f.declaration.id for f in roots], (), OUTSIDE_NAMESPACES)
    return [f for f in found if f.declaration.id in keys]


def _registers(declaration: Declaration) -> bool:
    """Whether it is a registration of ops: it names every op, and no op needs it."""
    return any(name.startswith(("TORCH_LIBRARY_", "STABLE_TORCH_LIBRARY_")) for name in declaration.names)


def _instantiations(
    parsed: Parsed, hosts: Sequence[Found], chosen: Sequence[Found], target: Target
) -> tuple[tuple[Instantiation, ...], tuple[str, ...]]:
    """Concrete kernels, and notes on how they were found."""
    roots = hosts or [f for f in parsed.found if f.declaration.role == "host"]
    kernels = {f.declaration.id for f in chosen if f.declaration.is_kernel}
    seen = instantiation.seen_from([c for f in roots for c in f.cursors], parsed.found, parsed.own)
    seen = tuple(i for i in seen if i.declaration in kernels or i.declaration is None)
    if seen:
        return seen, ("instantiations: read off the syntax tree",)
    is_method = bool(hosts) and hosts[0].cursors[0].kind in _CLASSES
    method = (target.host_function or "").split("::")[-1] if is_method else None
    path = parsed.own.root / parsed.unit
    return instantiation.chosen_for(parsed.found, chosen, parsed.own, path, parsed.parse, method)


def _launches(parsed: Parsed, chosen: Sequence[Found]) -> tuple[Launch, ...]:
    """Launch sites of the slice's kernels, in the order of their files' bytes."""
    kernels = {name for f in chosen if f.declaration.is_kernel for name in f.declaration.names}
    seen = launches(chosen, parsed.own).launches.values()
    return tuple(
        sorted(
            (launch for launch in seen if launch.kernel.split("::")[-1] in kernels),
            key=lambda launch: (launch.file, launch.offset, launch.kernel, launch.host_function),
        )
    )


def _shown(kernels: Sequence[Found], concrete: Sequence[Instantiation], name: str | None) -> Found:
    """The kernel to show: the one asked for, the one that is instantiated first, the first definition."""
    simple = (name or "").split("::")[-1]
    named = [f for f in kernels if simple in f.declaration.names] or list(kernels)
    by_id = {f.declaration.id: f for f in named}
    for concrete_kernel in concrete:
        if concrete_kernel.declaration in by_id:
            return by_id[concrete_kernel.declaration]
    return next((f for f in named if any(c.is_definition() for c in f.cursors)), named[0])


def _signature(host: Found, name: str) -> tuple[tuple[str, str], ...]:
    simple = name.split("::")[-1]
    cursors = (c if c.kind in _FUNCTIONS else _method(c, simple) for c in host.cursors)
    cursor = next(c for c in cursors if c is not None)
    return tuple((_type_name(argument.type), argument.spelling) for argument in _parameters(cursor))


def _type_name(type_: Any) -> str:
    canonical: str = type_.get_canonical().spelling
    # A template's parameter has no name of its own in the canonical type.
    return str(type_.spelling) if "type-parameter-" in canonical else canonical


def _parameters(cursor: Any) -> Iterable[Any]:
    return (child for child in cursor.get_children() if child.kind == CursorKind.PARM_DECL)


def _outside_headers(parsed: Parsed) -> tuple[str, ...]:
    """Names of all headers that own files include and that aren't own, in the unit's order."""
    names: list[str] = []
    for cursor in parsed.tree.tu.cursor.get_children():
        if cursor.kind != CursorKind.INCLUSION_DIRECTIVE or cursor.location.file is None:
            continue
        if parsed.own.relative(cursor.location.file.name) is None:
            continue
        if parsed.own.relative(cursor.get_included_file().name) is None:
            names.append(cursor.spelling)
    return tuple(dict.fromkeys(names))


def _notes(parsed: Parsed, chosen: Sequence[Found]) -> tuple[str, ...]:
    notes = [
        f"the parser reported: {d.text} ({parsed.own.relative(d.file) or Path(d.file or '').name}:{d.line})"
        for d in parsed.tree.diagnostics[:5]
    ]
    frozen = [
        f.declaration.names[0] if f.declaration.names else f.declaration.id
        for f in chosen
        if _depends_on_arch(parsed.own, f.declaration)
    ]
    if frozen:
        notes.append(f"frozen to {parsed.arch}: {', '.join(dict.fromkeys(frozen))} (under #if on the architecture)")
    defined = {name for f in chosen if any(c.is_definition() for c in f.cursors) for name in f.declaration.names}
    elsewhere = {
        name
        for f in chosen
        if f.cursors[0].kind in _FUNCTIONS and not f.declaration.is_kernel
        for name in f.declaration.names
    } - defined
    if elsewhere:
        notes.append(f"defined in another unit: {', '.join(sorted(elsewhere))}")
    return tuple(notes)


def _depends_on_arch(own: OwnFiles, declaration: Declaration) -> bool:
    around = conditions_around(own.text(declaration.extent.file), declaration.extent.start)
    return any("__CUDA_ARCH__" in condition for condition in around)
