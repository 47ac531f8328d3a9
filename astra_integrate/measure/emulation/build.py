"""An op's text plus the emulation, compiled by the host's C++ compiler into a library that the worker loads."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from astra_integrate.errors import AstraError, MissingTool, NotMeasured
from astra_integrate.locking import Exclusive
from astra_integrate.records import CompileFlags, digest_of
from astra_integrate.settings import Settings
from astra_integrate.toolchain.discovery import Toolchain

from .launches import host_text

HERE = Path(__file__).parent
_RUNTIME = ("runtime.cpp", "faults.cpp", "device.cpp", "tensor.cpp", "switch.S")
# -fno-strict-aliasing: vector loads through reinterpret_cast are what kernels are made of.
# -fwrapv: 32-bit offsets wrap on the device. No contraction: the same bits on every machine.
_CODE = (
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-math-errno",
    "-ffp-contract=off",
    "-fno-ipa-reference",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-U_FORTIFY_SOURCE",
    "-fsanitize=alignment,bounds",
    "-fno-sanitize-recover=all",
    "-fpermissive",
    "-w",
)
_DROPPED = re.compile(
    r"^#\s*include\s*[<\"](?:torch/(?!headeronly)|ATen/|c10/(?!util/(?:Half|BFloat16|Float8))|cublas)[^\n]*$", re.M
)


class EmulationCompileError(AstraError):
    """The host compiler refused the text; ``message`` is its first error, ``lacking`` a name that nothing declares."""

    def __init__(self, message: str, lacking: str = "") -> None:
        super().__init__(message)
        self.lacking = lacking


def build(
    text: str,
    host_function: str,
    host_signature: Sequence[tuple[str, str]],
    folder: Path,
    toolchain: Toolchain,
    settings: Settings,
    flags: CompileFlags,
    includes: Sequence[Path] = (),
) -> Path:
    """Compile ``text`` (CUDA C++ of a whole op) for the emulation.

    Args:
        text: device and host declarations, without includes of a tensor library.
        host_function: qualified name of the launcher that the entry calls.
        host_signature: its parameters; only their number is used, the types come from the compiler.
        folder: where the library goes; the same content isn't built twice.
        toolchain: gives the C++ compiler and the CUDA headers.
        settings: gives the cache for the runtime's own objects and the time limit.
        flags: the unit's defines and the folders of the headers it needs (absolute).
        includes: more include folders, searched after the emulation's own.

    Returns:
        The path of a shared library with the function ``emu_entry``.

    Raises:
        EmulationCompileError: the compiler's first error.
        MissingTool: no C++ compiler or no CUDA headers.
        NotMeasured: this machine's processor isn't supported.
    """
    if os.uname().machine != "x86_64":
        raise NotMeasured(f"The emulation runs on x86-64, not on {os.uname().machine}", "Run it on an x86-64 host")
    if toolchain.cxx is None or not toolchain.cuda_includes:
        raise MissingTool("The emulation needs a C++ compiler and the CUDA headers", "Run `astra doctor`")
    cxx = str(toolchain.cxx)
    folders = _include_arguments(toolchain, flags)
    defines = [f"-D{define}" for define in flags.defines if not define.startswith("TORCH_TARGET_VERSION")]
    source = unit_text(text, host_function, len(host_signature))
    objects = _runtime_objects(cxx, folders, defines, settings)
    arguments = [*_CODE, *defines, "-include", str(objects[0].parent / "prelude.hpp"), *folders]
    arguments += [part for path in includes for part in ("-isystem", str(path))]
    key = digest_of("\0".join([cxx, *arguments, source]))[:24]
    library = folder / f"op_{key}.so"
    if library.is_file():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"op_{key}.cpp"
    path.write_text(source, encoding="utf-8", errors="surrogateescape")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / "op.so"
        command = [cxx, *arguments, "-shared", str(path), *map(str, objects), "-o", str(made)]
        _compile(command, settings.compile_seconds, path.name)
        made.replace(library)
    return library


def unit_text(text: str, host_function: str, parameters: int) -> str:
    """The translation unit: the op's text rewritten for a host compiler, and the entry that calls it."""
    rewritten = host_text(_DROPPED.sub("", text))
    return (
        f"{rewritten.text}\n"
        '#include "emu/entry.hpp"\n'
        f"extern const size_t emu_dynamic_align = {rewritten.dynamic_alignment};\n"
        'extern "C" __attribute__((visibility("default")))\n'
        "int emu_entry(const emu_argument* arguments, int count) {\n"
        f"  return ::emu::enter(&::{host_function.removeprefix('::')}, arguments, count);\n"
        "}\n"
    )


def _include_arguments(toolchain: Toolchain, flags: CompileFlags) -> list[str]:
    cuda = [path for path in toolchain.cuda_includes if path.name != "cccl"]
    own = [HERE / "include", HERE / "include" / "stand_ins"]
    arguments = [f"-I{path}" for path in own]
    arguments += [part for path in cuda for part in ("-isystem", str(path))]
    for folder in flags.system_include_dirs:
        arguments += ["-isystem", folder]
    return arguments


def _runtime_objects(cxx: str, folders: list[str], defines: list[str], settings: Settings) -> list[Path]:
    """The runtime's objects and its precompiled prelude, built once per compiler, headers and runtime."""
    own = sorted(path for path in HERE.rglob("*") if path.suffix in (".cpp", ".hpp", ".S", ".h", ".cuh"))
    contents = [path.read_text(encoding="utf-8") for path in own]
    key = digest_of("\0".join([_identity(cxx), *_CODE, *folders, *defines, *contents]))[:24]
    home = settings.cache / "emulation" / key
    objects = [home / f"{name}.o" for name in _RUNTIME]
    if (home / "complete").is_file():
        return objects
    # Another process may be at it: nobody may read a precompiled header that is half written.
    home.parent.mkdir(parents=True, exist_ok=True)
    with Exclusive(home.with_suffix(".lock"), "The emulation's runtime", wait=settings.compile_seconds):
        if not (home / "complete").is_file():
            _build_runtime(cxx, home, objects, folders, defines, settings.compile_seconds)
    return objects


def _build_runtime(
    cxx: str, home: Path, objects: list[Path], folders: list[str], defines: list[str], seconds: float
) -> None:
    home.mkdir(parents=True, exist_ok=True)
    plain = [option for option in _CODE if "sanitize" not in option]
    for name, target in zip(_RUNTIME, objects, strict=True):
        _compile([cxx, *plain, *folders, "-c", str(HERE / name), "-o", str(target)], seconds, name)
    prelude = home / "prelude.hpp"
    prelude.write_text('#include "emu/prelude.hpp"\n', encoding="utf-8")
    command = [cxx, *_CODE, *defines, *folders, "-x", "c++-header", str(prelude), "-o", f"{prelude}.gch"]
    _compile(command, seconds, "prelude.hpp")
    (home / "complete").touch()


def _identity(cxx: str) -> str:
    try:
        return subprocess.run([cxx, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingTool(f"The C++ compiler {cxx} does not run: {error}", "Set ASTRA_CXX to one that does") from error


def _compile(command: list[str], seconds: float, name: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise EmulationCompileError(f"{name} took the host compiler more than {seconds:.0f} s") from error
    if done.returncode:
        raise EmulationCompileError(*first_error(done.stderr))


_ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: (?P<text>.+)$", re.M)
_LACKING = re.compile(
    r"[‘'](?P<name>[\w:~<>, ]+)[’'] (?:was not declared|is not a member|has not been declared|does not name a type)"
)
_NO_FILE = re.compile(r"(?P<name>\S+): No such file or directory")


def first_error(output: str) -> tuple[str, str]:
    """The compiler's first error as one line, and the name that nothing declares where that is the cause."""
    found = _ERROR.search(output)
    if found is None:
        undefined = re.search(r"undefined reference to [`‘'](?P<name>[^'’]+)['’]", output)
        if undefined is not None:
            return f"nothing defines {undefined['name']}", undefined["name"]
        lines = output.strip().splitlines()
        return (lines[-1] if lines else "the host compiler failed without a word"), ""
    text = found["text"]
    lacking = _LACKING.search(text) or _NO_FILE.search(text)
    return f"line {found['line']}: {text}", lacking["name"] if lacking else ""
