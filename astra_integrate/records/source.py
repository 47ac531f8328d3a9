"""Framework source and what the extractor finds in it."""

from __future__ import annotations

from typing import Literal

from .base import Record


class Source(Record):
    """One framework's source tree on disk.

    ``root`` is the folder that holds the framework's repository (sdist, checkout) or package
    (wheel); every file path in other records is relative to it, with ``/``. ``content`` is the
    SHA-256 of the archive, of the git tree id, or of the files for a path.
    """

    framework: str
    version: str
    spec: str
    kind: Literal["sdist", "wheel", "git", "path", "installed"]
    root: str
    content: str


class Extent(Record):
    """Bytes ``start`` to ``end`` (exclusive) of ``file``; ``bytes_digest`` is the SHA-256 of them."""

    file: str
    start: int
    end: int
    bytes_digest: str


class Parameter(Record):
    """A function parameter; ``direction`` is what the type allows (const pointer: in)."""

    name: str
    type: str
    direction: Literal["in", "out", "inout", "value"]


class TemplateParameter(Record):
    """A template parameter: ``kind`` is type, value or template; ``type`` is the value's type."""

    name: str
    kind: Literal["type", "value", "template"]
    type: str = ""


class Kernel(Record):
    """A GPU kernel (or CPU kernel) of the framework. ``name`` is qualified by namespaces."""

    target: Literal["cuda", "cpu"] = "cuda"
    name: str
    extent: Extent
    parameters: tuple[Parameter, ...] = ()
    template_parameters: tuple[TemplateParameter, ...] = ()
    attributes: tuple[str, ...] = ()
    signature: str
    body_hash: str
    units: tuple[str, ...] = ()


class Launch(Record):
    """One launch site. The key is (``file``, ``offset``): the byte offset of ``<<<`` or of the call."""

    kernel: str
    host_function: str
    file: str
    offset: int
    line: int
    style: Literal["chevrons", "launch_ex", "launch_object"]
    grid: str
    block: str
    shared_bytes: str = "0"
    stream: str = "0"
    arguments: tuple[str, ...] = ()
    callee: str = ""
    macro: str | None = None
    instantiations: tuple[str, ...] = ()


class Caller(Record):
    """A place in the framework's Python that calls an op."""

    file: str
    line: int
    function: str


class Binding(Record):
    """Framework op ↔ host function ↔ kernels ↔ Python callers."""

    op: str
    namespace: str
    schema_text: str | None = None
    host_function: str
    host_file: str | None = None
    kernels: tuple[str, ...] = ()
    callers: tuple[Caller, ...] = ()
    ambiguous: bool = False


class UnitFailure(Record):
    """A translation unit that could not be read in full, and why."""

    unit: str
    severity: Literal["fatal", "error", "timeout", "crash"]
    cause: str


class Unindexed(Record):
    """A ``__global__`` in the text that is not in the index, and the reason."""

    file: str
    line: int
    name: str
    reason: str


class KernelIndex(Record):
    """Everything found in one source for one architecture."""

    source: Source
    arch: str
    kernels: tuple[Kernel, ...] = ()
    launches: tuple[Launch, ...] = ()
    bindings: tuple[Binding, ...] = ()
    failures: tuple[UnitFailure, ...] = ()
    unindexed: tuple[Unindexed, ...] = ()
    units: tuple[str, ...] = ()
