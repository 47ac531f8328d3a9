"""vLLM: CUDA sources in ``csrc``, built by CMake, registered with torch's dispatcher."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Literal

from astra_integrate.errors import BadInput
from astra_integrate.records import Binding, CompileFlags

from . import cuda_files, python_calls, torch_bindings, vllm_build, wheel_versions
from .base import Accounting, HeaderNeed, Target

# Not CUDA: CPU kernels, AMD kernels.
_OTHER_DEVICES = r"^csrc/(?:cpu|rocm)/"


class VLLM:
    """The answers of :class:`astra_integrate.frameworks.base.Framework` for vLLM."""

    name = "vllm"
    project = "vllm"
    artifact: Literal["sdist", "wheel"] = "sdist"
    repository = "https://github.com/vllm-project/vllm"
    op_data = Path(__file__).with_name("vllm_ops.toml")

    def detect(self, root: Path) -> str | None:
        """The version of a source tree or an installed package; ``0+unknown`` where the tree doesn't say."""
        if not (root / "vllm" / "__init__.py").is_file():
            return None
        about = root / "PKG-INFO"
        if about.is_file():
            found = re.search(r"^Version: (\S+)", about.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
            if found:
                return found[1]
        written = root / "vllm" / "_version.py"
        if written.is_file():
            found = re.search(r"version = '([^']+)'", written.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found[1]
        return "0+unknown"

    def own_folders(self, root: Path) -> tuple[str, ...]:
        """``csrc``, where it is there (an installed package has none)."""
        return ("csrc",) if (root / "csrc").is_dir() else ()

    def units(self, root: Path) -> tuple[str, ...]:
        """The .cu files that the CUDA build compiles; without a CMake file, all but other devices'."""
        present = {path.relative_to(root).as_posix() for path in (root / "csrc").rglob("*.cu")}
        compiled = vllm_build.evaluate(root, "CUDA").compiled()
        if not compiled & present:
            return tuple(sorted(path for path in present if not re.search(_OTHER_DEVICES, path)))
        return tuple(sorted(present & compiled))

    def flags(self, root: Path, unit: str, arch: str) -> CompileFlags:
        """Flags of the target that compiles ``unit``; ``assumed`` lists what the build files don't say."""
        build = vllm_build.evaluate(root, "CUDA")
        target = next((t for t in build.targets.values() if unit in t.sources), None)
        own = build.sources.get(unit, vllm_build.SourceOptions())
        optimise, build_type = vllm_build.optimisation(build)
        assumed = [f"torch's own nvcc flags: {' '.join(vllm_build.TORCH_NVCC_FLAGS)}, --expt-extended-lambda"]
        if not build.build_type:
            assumed.append(f"build type {build_type}")
        if target is None:
            target = next((t for t in build.targets.values() if t.language == "CUDA"), vllm_build.NO_TARGET)
            assumed.append("no target of the build compiles this file: flags of the first CUDA target")
        if own.archs and not _serves(own.archs, arch):
            assumed.append(f"the build compiles this file for {', '.join(own.archs)} only")
        if any("cutlass" in folder.lower() or "/examples/" in folder for folder in (*target.includes, *own.includes)):
            wanted = build.variables.get("CUTLASS_REVISION", "")
            assumed.append(f"CUTLASS headers of the flashinfer wheel instead of {wanted}".rstrip())
        assumed.append(f"built for {build.variables.get('CUDA_ARCHS', 'every supported architecture')}, CUDA 13.0")
        options = list(dict.fromkeys([*target.options, *own.options]))
        defines = [option[2:] for option in options if option.startswith("-D")] + [*target.definitions, "NDEBUG"]
        nvcc = [option for option in options if not option.startswith("-D")] + ["--expt-extended-lambda", optimise]
        standard = build.variables.get("CMAKE_CUDA_STANDARD") or build.variables.get("CMAKE_CXX_STANDARD")
        if not standard:
            assumed.append("C++17")
        return CompileFlags(
            standard=f"c++{standard or '17'}",
            defines=tuple(dict.fromkeys(defines)),
            include_dirs=tuple(folder for folder in dict.fromkeys(target.includes) if (root / folder).is_dir()),
            system_include_dirs=wheel_versions.python_headers(),
            nvcc=tuple(dict.fromkeys(nvcc)),
            assumed=tuple(assumed),
        )

    def header_needs(self, root: Path) -> tuple[HeaderNeed, ...]:
        """torch as pinned, CUTLASS, and the CUDA libraries that torch's headers include."""
        requirements = root / "requirements"
        version = wheel_versions.pinned("torch", [root / "pyproject.toml", *_pins(requirements)])
        flashinfer = wheel_versions.pinned("flashinfer-python", _pins(requirements))
        return (wheel_versions.torch(version), wheel_versions.cutlass(flashinfer), *wheel_versions.cuda_libraries())

    def bindings(self, root: Path) -> tuple[Binding, ...]:
        """Ops that the CUDA build registers, with schema and host function."""
        files = self._files(root)
        return tuple(
            Binding(
                op=entry.op,
                namespace=entry.namespace,
                schema_text=entry.schema,
                host_function=entry.host_function,
                host_file=_first(files.defining(entry.host_function)),
            )
            for entry in _registrations(files)
            if entry.host_function
        )

    def with_callers(self, root: Path, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        """``bindings`` with the Python places that call each op (reads all Python files: seconds)."""
        callers = python_calls.torch_op_callers(root, root / "vllm", "vllm._custom_ops")
        return tuple(b.model_copy(update={"callers": callers.get((b.namespace, b.op), ())}) for b in bindings)

    def accounting(self, root: Path) -> Accounting:
        """All of ``csrc``, AMD's and CPU files included."""
        files = self._files(root)
        cuda = set(self.units(root))
        hip = vllm_build.evaluate(root, "HIP").compiled() - cuda
        everything = cuda_files.load(root, self.own_folders(root), sorted(cuda | hip), ("csrc",))
        scripts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted((root / "csrc").rglob("*.py"))]

        def other_device(path: str) -> bool:
            users = set(everything.units_of(path))
            return not users & cuda and (bool(users) or re.search(_OTHER_DEVICES, path) is not None)

        def generated(path: str) -> bool:
            return any(f'"{Path(path).name}"' in script or f"/{Path(path).name}" in script for script in scripts)

        return Accounting({**files.texts, **everything.texts}, other_device, generated)

    def find(self, root: Path, name: str) -> tuple[Target, ...]:
        """Ops of that name, else kernels of that name."""
        files = self._files(root)
        op = name.split("::")[-1].split(".")[-1]
        targets = []
        for entry in _registrations(files):
            if entry.op == op and entry.host_function:
                units = self._units_of_function(files, entry.host_function)
                targets.append(Target(None, entry.op, entry.host_function, units))
        if targets:
            return tuple(targets)
        units = tuple(dict.fromkeys(u for path in files.kernels.get(op, ()) for u in files.units_of(path)))
        return (Target(name, None, None, units),) if units else ()

    def known_names(self, root: Path) -> tuple[str, ...]:
        """Ops, then kernels."""
        files = self._files(root)
        ops = {entry.op for entry in _registrations(files) if entry.host_function}
        return (*sorted(ops), *(kernel for kernel in files.kernels if kernel not in ops))

    def _files(self, root: Path) -> cuda_files.CudaFiles:
        if not self.own_folders(root):
            raise BadInput(f"{root} holds no CUDA sources of vLLM", "Use vllm==VERSION or a source checkout")
        return cuda_files.load(root, self.own_folders(root), self.units(root), ("csrc",), _OTHER_DEVICES)

    def _units_of_function(self, files: cuda_files.CudaFiles, function: str) -> tuple[str, ...]:
        units = [unit for path in files.defining(function) for unit in files.units_of(path)]
        if not units:  # a .cpp dispatcher: where the functions it calls are defined
            units = [unit for path in files.called_from(function) for unit in files.units_of(path)]
        return tuple(dict.fromkeys(units))


def _first(items: tuple[str, ...]) -> str | None:
    return items[0] if items else None


def _pins(requirements: Path) -> list[Path]:
    return [requirements / "cuda.txt", requirements / "build" / "cuda.txt", requirements / "build.txt"]


def _serves(archs: list[str], arch: str) -> bool:
    """Whether one of ``9.0a``, ``8.0+PTX``, ``10.0f`` is what a GPU of ``arch`` (``sm_90a``) would run."""
    number = re.sub(r"\D", "", arch)
    dotted = f"{number[:-1]}.{number[-1]}"
    return bool(vllm_build.loose_intersection(archs, [dotted]))


@lru_cache(maxsize=8)
def _registrations(files: cuda_files.CudaFiles) -> tuple[torch_bindings.Registration, ...]:
    build = vllm_build.evaluate(files.root, "CUDA")
    targets = {source: name for name, target in build.targets.items() for source in target.sources}
    # Files that belong to no CUDA target (AMD's own registrations) register nothing here.
    compiled = set(targets) or set(files.texts)
    texts = {path: text for path, text in files.texts.items() if path in compiled}
    return tuple(torch_bindings.registrations(texts, lambda path: targets.get(path, "_C")))
