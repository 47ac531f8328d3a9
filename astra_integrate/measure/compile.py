"""Device source text → cubin: nvcc with the framework's flags, a limit on time and memory, and a cache."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from astra_integrate.errors import AstraError, MissingTool
from astra_integrate.extract.render import keep_text
from astra_integrate.records import CompileFlags, digest_of

if TYPE_CHECKING:
    from astra_integrate.toolchain.discovery import Toolchain

SOURCE, CUBIN, LOG, DEPENDENCIES = "kernel.cu", "kernel.cubin", "ptxas.log", "dependencies.d"
_ERROR = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): (?:catastrophic |fatal )?error(?: #\S+)?: (?P<text>.*)$"
)
_HOST_ERROR = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$")
_PTXAS_ERROR = re.compile(r"^ptxas (?:.*?, line \d+; )?(?:error|fatal)\s*: (?P<text>.*)$")


class CompileError(AstraError):
    """nvcc refused the text. ``errors`` are its first errors, each with the source line it is about."""

    exit_code = 1

    def __init__(self, message: str, errors: Sequence[str] = (), way_out: str = "") -> None:
        super().__init__(message, way_out)
        self.errors = tuple(errors)


@dataclass(frozen=True)
class Limits:
    """What one compiler run may take."""

    seconds: float = 600.0
    memory_bytes: int = 8 << 30


LIMITS = Limits()


@dataclass(frozen=True)
class Run:
    """A finished compiler run. ``log`` holds stdout and stderr together."""

    command: tuple[str, ...]
    code: int
    log: str
    seconds: float


def cubin(
    text: str,
    flags: CompileFlags,
    arch: str,
    toolchain: Toolchain,
    folder: Path,
    *,
    instantiations: Sequence[str] = (),
    root: Path | None = None,
    limits: Limits = LIMITS,
) -> Path:
    """Compile ``text`` for ``arch`` and return the cubin; :func:`ptxas_log` has what ptxas said.

    Args:
        text: the source, UTF-8 with surrogateescape.
        flags: the framework's flags; include folders may be relative to ``root``.
        arch: for example ``sm_90a``.
        toolchain: gives nvcc, the host compiler and the CUDA headers.
        folder: the cache. One folder per key in it; the key is the text, the flags, the architecture
            and the compiler. Files that the text includes are compared too (path, size, time).
        instantiations: template-ids that are to be emitted besides what the text forces itself.
        root: the source's root.
        limits: time and memory of the run.

    Raises:
        CompileError: nvcc refused the text, took too long or too much memory.
        MissingTool: there is no nvcc.
    """
    if instantiations:
        text += "\n" + keep_text(instantiations)
    command = nvcc_command(flags, arch, toolchain, root=root)
    key = digest_of("\0".join([text, *command, _identity(Path(command[0]))]))
    entry = folder / key[:2] / key
    if _fresh(entry):
        return entry / CUBIN
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=folder) as work:
        made = Path(work) / "entry"
        made.mkdir()
        source = made / SOURCE
        source.write_bytes(text.encode("utf-8", "surrogateescape"))
        # Relative names and the entry as working folder: the path of the cache must not get into the object.
        run = run_compiler([*command, "-MD", "-MF", DEPENDENCIES, SOURCE, "-o", CUBIN], limits=limits, cwd=made)
        if run.code != 0 or not (made / CUBIN).is_file():
            raise compile_error(run, text, limits)
        (made / LOG).write_text(run.log, encoding="utf-8")
        (made / DEPENDENCIES).write_text(_stamps(made), encoding="utf-8")
        _publish(made, entry)
    return entry / CUBIN


def ptxas_log(cubin: Path) -> str:
    """What nvcc and ptxas printed while they made ``cubin``: registers, spills, shared memory per kernel."""
    return (cubin.parent / LOG).read_text(encoding="utf-8")


def nvcc_command(flags: CompileFlags, arch: str, toolchain: Toolchain, *, root: Path | None = None) -> tuple[str, ...]:
    """nvcc with everything but input and output, for a cubin of one architecture.

    Raises :class:`MissingTool` where there is no nvcc.
    """
    if toolchain.nvcc is None:
        raise MissingTool("nvcc is missing", toolchain.tool("nvcc").mend)
    own = [argument for folder in flags.include_dirs for argument in ("-I", _absolute(folder, root))]
    outside = [argument for folder in flags.system_include_dirs for argument in ("-isystem", _absolute(folder, root))]
    cuda = [argument for folder in toolchain.cuda_includes for argument in ("-isystem", str(folder))]
    return (
        str(toolchain.nvcc),
        *toolchain.ccbin,
        f"-std={flags.standard}",
        f"-arch={arch}",
        "-cubin",
        "-Xptxas=-v",
        *(f"-D{define}" for define in flags.defines),
        *own,
        *outside,
        *cuda,
        *flags.nvcc,
    )


def run_compiler(command: Sequence[str], *, limits: Limits, cwd: Path | None = None) -> Run:
    """Run ``command`` with its children in one process group; past the time limit the group is killed.

    A run that was stopped has the code 124.
    """
    begun = time.monotonic()
    environment = {**os.environ, "LC_ALL": "C"}
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        _limit_memory(process.pid, limits.memory_bytes)
        try:
            output, _ = process.communicate(timeout=limits.seconds)
            code = process.returncode
        except BaseException as error:
            # Also on Ctrl-C: the compiler's children would go on without their parent.
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = 124
    return Run(tuple(command), code, output.decode("utf-8", "replace"), time.monotonic() - begun)


def compile_error(run: Run, text: str, limits: Limits) -> CompileError:
    """The error for a run that failed, with nvcc's first errors mapped to the lines of ``text``."""
    if run.code == 124:
        return CompileError(
            f"nvcc was stopped after {limits.seconds:.0f} s", way_out="Raise ASTRA_COMPILE_SECONDS if that is too short"
        )
    errors = first_errors(run.log, text)
    if not errors:
        tail = [line for line in run.log.splitlines() if line.strip()][-3:]
        errors = tuple(tail) or (f"nvcc ended with code {run.code} and said nothing",)
    return CompileError(f"nvcc refused the text: {errors[0]}", errors)


def first_errors(log: str, text: str = "", limit: int = 5) -> tuple[str, ...]:
    """At most ``limit`` errors out of a compiler's log: place, message, and the line of ``text`` it is about."""
    lines = text.splitlines()
    found: list[str] = []
    for line in log.splitlines():
        match = _ERROR.match(line) or _HOST_ERROR.match(line)
        if match:
            number = int(match["line"])
            own = Path(match["file"]).name == SOURCE
            place = f"line {number}" if own else f"{Path(match['file']).name}:{number}"
            shown = lines[number - 1].strip() if own and 0 < number <= len(lines) else ""
            found.append(f"{place}: {match['text']}" + (f" | {shown}" if shown else ""))
        elif match := _PTXAS_ERROR.match(line):
            found.append(f"ptxas: {match['text']}")
    return tuple(dict.fromkeys(found))[:limit]


def _absolute(folder: str, root: Path | None) -> str:
    return str(root / folder) if root is not None else folder


def _limit_memory(pid: int, limit: int) -> None:
    # After the start, not in a preexec hook: those are unsafe with threads. nvcc's children inherit the limit.
    try:
        import resource

        resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))
    except (ImportError, AttributeError, ProcessLookupError):
        return  # not Linux, or it has ended already


def _identity(nvcc: Path) -> str:
    stat = nvcc.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _fresh(entry: Path) -> bool:
    """Whether the entry is there and none of the files it was made from has changed."""
    try:
        stamps = (entry / DEPENDENCIES).read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return (entry / CUBIN).is_file() and all(_stamp(line.split("\t")[0]) == line for line in stamps.splitlines())


def _stamps(made: Path) -> str:
    text = (made / DEPENDENCIES).read_text(encoding="utf-8", errors="surrogateescape")
    _, _, files = text.replace("\\\n", " ").partition(" : ")
    names = [name.replace("\\ ", " ") for name in re.split(r"(?<!\\)\s+", files.strip())]
    return "\n".join(_stamp(name) for name in names if name and name != SOURCE)


def _stamp(name: str) -> str:
    try:
        stat = Path(name).stat()
    except OSError:
        return f"{name}\tgone"
    return f"{name}\t{stat.st_size}\t{stat.st_mtime_ns}"


def _publish(made: Path, entry: Path) -> None:
    """Move a finished entry into the cache; another process may have been first with the same."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    try:
        made.rename(entry)
    except OSError:
        shutil.rmtree(entry, ignore_errors=True)
        if not entry.exists():
            made.rename(entry)
