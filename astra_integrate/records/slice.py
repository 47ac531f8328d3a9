"""A kernel cut out of its framework, with the way back."""

from __future__ import annotations

from typing import Literal

from .base import Record, digest_of
from .source import Extent, Kernel, Launch, Source


class Declaration(Record):
    """A top-level declaration or macro of the framework that the slice holds.

    ``id`` is unique in the slice and stable for equal source. ``text`` is exactly the bytes of
    ``extent`` decoded as UTF-8 with surrogateescape, so replacing it in the file is a byte edit.
    ``namespaces`` are the enclosing namespaces, outermost first ("" for an anonymous one).
    ``role``: device (kernels, ``__device__`` functions), host, either (types, constants,
    ``__host__ __device__``), macro.
    """

    id: str
    names: tuple[str, ...]
    kind: str
    role: Literal["device", "host", "either", "macro"]
    namespaces: tuple[str, ...] = ()
    order: int
    extent: Extent
    text: str
    is_kernel: bool = False


class CompileFlags(Record):
    """Flags derived from the framework's own build files; ``assumed`` lists what those don't say."""

    standard: str
    defines: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    system_include_dirs: tuple[str, ...] = ()
    nvcc: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


class Slice(Record):
    """Self-contained source of one op: its kernels, the device code they reach, its host launcher.

    ``declarations`` are in the order of the translation unit; the source map is their extents.
    ``includes`` are the outside headers (``<...>``) that stay included. ``instantiations`` are
    full template-ids of the kernels (``ns::kernel<args>``), first the one to show.
    """

    source: Source
    unit: str
    arch: str
    kernel: Kernel
    op: str | None = None
    host_function: str | None = None
    host_signature: tuple[tuple[str, str], ...] = ()
    declarations: tuple[Declaration, ...]
    includes: tuple[str, ...] = ()
    instantiations: tuple[str, ...] = ()
    launches: tuple[Launch, ...] = ()
    flags: CompileFlags
    notes: tuple[str, ...] = ()

    def declaration(self, id: str) -> Declaration:
        """The declaration with that id; ``KeyError`` when there is none."""
        for declaration in self.declarations:
            if declaration.id == id:
                return declaration
        raise KeyError(id)

    @property
    def closure_hash(self) -> str:
        """SHA-256 over all device code, types, constants and macros that the slice holds."""
        return digest_of("\0".join(d.text for d in self.declarations if d.role != "host"))

    @property
    def launcher_digest(self) -> str:
        """SHA-256 over the host declarations of the slice."""
        return digest_of("\0".join(d.text for d in self.declarations if d.role == "host"))
