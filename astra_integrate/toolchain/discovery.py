"""Which compilers, headers and disassemblers astra uses: the system's first, else out of PyPI wheels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from astra_integrate.errors import AstraError, MissingTool
from astra_integrate.settings import Settings

from .cuda_wheels import COMPILER, DISASSEMBLERS, Merged, merged
from .host import find_cxx
from .system import cuda_includes, find_clang, find_cuda, find_disassemblers, find_git
from .tool import Tool, cuda_version

__all__ = ["Tool", "Toolchain", "discover", "require"]


@dataclass(frozen=True)
class Toolchain:
    """Everything needed to parse, compile and disassemble; a part is None (or empty) where it is missing.

    ``cuda_home`` is the folder that holds ``bin``, ``include`` and ``nvvm``. ``cuda_includes`` are
    that toolkit's include folders, CCCL first. ``clang_resource`` is libclang's own resource folder
    (``-resource-dir``). ``cxx_includes`` are the C++ standard library's folders in the compiler's order.
    """

    nvcc: Path | None
    cuda_home: Path | None
    cuda_includes: tuple[Path, ...]
    cuobjdump: Path | None
    nvdisasm: Path | None
    clang_resource: Path | None
    cxx: Path | None
    cxx_includes: tuple[Path, ...]
    git: Path | None
    tools: tuple[Tool, ...]

    @property
    def ccbin(self) -> tuple[str, ...]:
        """Arguments that make nvcc use :attr:`cxx` as its host compiler (by itself it takes ``gcc`` of PATH)."""
        return ("-ccbin", str(self.cxx)) if self.cxx else ()

    def tool(self, name: str) -> Tool:
        """The tool ``nvcc | cuobjdump | nvdisasm | clang | c++ | git``; ``KeyError`` for any other name."""
        for tool in self.tools:
            if tool.name == _SYNONYMS.get(name, name):
                return tool
        raise KeyError(name)


_SYNONYMS = {"cxx": "c++", "clang_resource": "clang"}
_found: dict[tuple[object, ...], Toolchain] = {}


def discover(settings: Settings, *, fetch: bool = True) -> Toolchain:
    """Find everything, once per process and setting.

    With ``fetch`` (and not ``settings.offline``) what the system lacks of CUDA is taken from PyPI
    wheels, unpacked under ``settings.cache/toolchain``; without, only what lies there already counts.
    A part that can't be had is None and its :class:`Tool` says why: call :func:`require` for what
    a stage needs. Raises ``BadInput`` where a setting names a folder or compiler that isn't one.
    """
    fetch = fetch and not settings.offline
    key = (settings.cache, settings.cuda_home, settings.cxx, settings.index_url, fetch)
    if key not in _found:
        _found[key] = _discover(settings, fetch)
    return _found[key]


def require(toolchain: Toolchain, *names: str) -> None:
    """Raise :class:`MissingTool`, with the line that mends it, for the first of ``names`` that is missing."""
    for name in names:
        tool = toolchain.tool(name)
        if tool.path is None:
            raise MissingTool(f"{tool.name} is missing", tool.mend)


def _discover(settings: Settings, fetch: bool) -> Toolchain:
    cxx, cxx_includes = find_cxx(settings)
    home, nvcc = _nvcc(settings, fetch)
    cuobjdump, nvdisasm = _disassemblers(settings, home, fetch)
    clang, git = find_clang(), find_git()
    return Toolchain(
        nvcc=nvcc.path,
        cuda_home=home,
        cuda_includes=cuda_includes(home) if home else (),
        cuobjdump=cuobjdump.path,
        nvdisasm=nvdisasm.path,
        clang_resource=clang.path,
        cxx=cxx.path,
        cxx_includes=cxx_includes,
        git=git.path,
        tools=(nvcc, cuobjdump, nvdisasm, clang, cxx, git),
    )


def _nvcc(settings: Settings, fetch: bool) -> tuple[Path | None, Tool]:
    home, version, origin = find_cuda(settings)
    if home is not None:
        return home, Tool("nvcc", home / "bin" / "nvcc", version, origin)
    wheels, cause = _wheels(COMPILER, settings, fetch)
    if wheels is None:
        seen = f"{origin}; {cause}" if origin else cause
        return None, Tool(
            "nvcc", None, mend=f"Install CUDA 13.0 and set ASTRA_CUDA_HOME, or let astra fetch it ({seen})"
        )
    return wheels.folder, _from_wheel("nvcc", "nvidia-cuda-nvcc", wheels)


def _disassemblers(settings: Settings, home: Path | None, fetch: bool) -> tuple[Tool, Tool]:
    system = find_disassemblers(home)
    if system is not None:
        cuobjdump, nvdisasm = (Tool(path.name, path, cuda_version(path) or "", "system") for path in system)
        return cuobjdump, nvdisasm
    wheels, cause = _wheels(DISASSEMBLERS, settings, fetch)
    if wheels is None:
        mend = f"Install cuda-cuobjdump and cuda-nvdisasm of the CUDA toolkit, or let astra fetch them ({cause})"
        return Tool("cuobjdump", None, mend=mend), Tool("nvdisasm", None, mend=mend)
    return (
        _from_wheel("cuobjdump", "nvidia-cuda-cuobjdump", wheels),
        _from_wheel("nvdisasm", "nvidia-cuda-nvdisasm", wheels),
    )


def _wheels(parts: tuple[tuple[str, str], ...], settings: Settings, fetch: bool) -> tuple[Merged | None, str]:
    """The merged wheels, or None and why they aren't there: a stage may not need them, so nothing is raised."""
    try:
        found = merged(parts, settings, fetch=fetch)
    except AstraError as error:
        return None, str(error).rstrip(".")
    if found is None:
        return (
            None,
            "the setting offline forbids it" if settings.offline else "not fetched yet: run `astra doctor --fetch`",
        )
    return found, ""


def _from_wheel(name: str, project: str, wheels: Merged) -> Tool:
    path = wheels.folder / "bin" / name
    version = cuda_version(path)
    if version is None:
        return Tool(name, None, mend=f"{path} doesn't run on this machine: remove {wheels.folder}, or install CUDA")
    return Tool(name, path, version, f"wheel {project} {wheels.versions[project]}")
