"""SGLang: header-only CUDA sources in the Python package, compiled at run time by its JIT loader."""

from __future__ import annotations

import ast
import dataclasses
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal

from astra_integrate.errors import BadInput
from astra_integrate.extract import cpp_text
from astra_integrate.records import Binding, CompileFlags

from . import cuda_files, jit_sites, wheel_versions
from .base import Accounting, HeaderNeed, Target

# The folder with csrc/ and include/ has moved with the versions, and git has the package below python/.
_JIT_FOLDERS = ("kernels/jit", "jit_kernel")
_PACKAGES = ("sglang", "python/sglang")
_ERROR_FOR_OTHERS = re.compile(r"#\s*(?:if|ifndef)[^\n]*USE_ROCM[^\n]*\n\s*#\s*error")


class SGLang:
    """The answers of :class:`astra_integrate.frameworks.base.Framework` for SGLang."""

    name = "sglang"
    project = "sglang"
    artifact: Literal["sdist", "wheel"] = "wheel"
    repository = "https://github.com/sgl-project/sglang"
    op_data = Path(__file__).with_name("sglang_ops.toml")

    def detect(self, root: Path) -> str | None:
        """The version of an unpacked wheel, an installed package or a checkout (``0+unknown``: it doesn't say)."""
        package = _package(root)
        if package is None:
            return None
        written = package / "_version.py"
        if written.is_file():
            found = re.search(r"version = '([^']+)'", written.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found[1]
        for about in sorted(root.glob("sglang-*.dist-info/METADATA")):
            found = re.search(r"^Version: (\S+)", about.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
            if found:
                return found[1]
        return "0+unknown"

    def own_folders(self, root: Path) -> tuple[str, ...]:
        """``csrc`` and ``include`` of the JIT kernels, and ``csrc`` of the packages beside them."""
        folder = _jit_folder(root)
        if folder is None:
            return ()
        own = [f"{folder}/{name}" for name in ("csrc", "include") if (root / folder / name).is_dir()]
        if folder.endswith(_JIT_FOLDERS[0]):
            beside = sorted((root / folder).parent.glob("*/csrc"))
            own += [path.relative_to(root).as_posix() for path in beside if path != root / folder / "csrc"]
        return tuple(own)

    def units(self, root: Path) -> tuple[str, ...]:
        """Every .cu and .cuh; headers that refuse any compiler but ROCm's are left out."""
        return tuple(
            sorted(
                path.relative_to(root).as_posix()
                for folder in self.own_folders(root)
                for suffix in ("*.cu", "*.cuh")
                for path in (root / folder).rglob(suffix)
                if not _rocm_only(cpp_text.read(path))
            )
        )

    def flags(self, root: Path, unit: str, arch: str) -> CompileFlags:
        """Flags of the JIT loader for a CUDA target, with those of the calls that load ``unit``."""
        folder = _need_jit_folder(root)
        default, define = _default_flags(root / folder)
        number = re.sub(r"\D", "", arch)
        sites = [site for site in _sites(root).sites if any(_names(unit, name) for name in site.cuda_files)]
        extra = list(dict.fromkeys(flag for site in sites for flag in site.cuda_flags))
        assumed: list[str] = []
        if not default:
            assumed.append("-std=c++20 -O3 --expt-relaxed-constexpr: the loader's defaults were not found")
            default = ["-std=c++20", "-O3", "--expt-relaxed-constexpr"]
        if any(not site.flags_literal for site in sites):
            assumed.append("flags that Python computes at run time: all that it spells")
        if not sites:
            assumed.append("no literal load of this file: default flags")
        computed = [flag for flag in extra if "{" in flag]
        if computed:
            assumed.append(f"without {', '.join(computed)}, whose values only a call has")
        options = [*default, *(flag for flag in extra if flag not in computed)]
        vendored = _vendored(root, folder, unit)
        return CompileFlags(
            standard=next((o.removeprefix("-std=") for o in options if o.startswith("-std=")), "c++20"),
            defines=(f"{define}={int(number) * 10}", *(o[2:] for o in options if o.startswith("-D"))),
            include_dirs=(f"{folder}/include", f"{folder}/csrc", *vendored),
            # The few sources that torch's own loader builds; all others need no Python.
            system_include_dirs=wheel_versions.python_headers() if _needs_torch(root / unit) else (),
            nvcc=tuple(dict.fromkeys(o for o in options if not o.startswith(("-D", "-std=")))),
            assumed=tuple(assumed),
        )

    def header_needs(self, root: Path) -> tuple[HeaderNeed, ...]:
        """tvm-ffi as pinned; flashinfer's, CUTLASS's, torch's and the CUDA libraries' headers for some units."""
        about = [*sorted(root.glob("sglang-*.dist-info/METADATA")), root / "python" / "pyproject.toml"]
        flashinfer = wheel_versions.pinned("flashinfer-python", about)
        return (
            HeaderNeed(
                "apache-tvm-ffi",
                wheel_versions.pinned("apache-tvm-ffi", about),
                "tvm_ffi/include",
                ("tvm_ffi/include",),
            ),
            wheel_versions.cutlass(flashinfer),
            *wheel_versions.flashinfer(flashinfer),
            HeaderNeed(
                "nvidia-mathdx",
                wheel_versions.pinned("nvidia-mathdx", about),
                "nvidia/mathdx/include",
                ("nvidia/mathdx/include",),
                optional=True,
            ),
            dataclasses.replace(wheel_versions.torch(wheel_versions.pinned("torch", about)), optional=True),
            *wheel_versions.cuda_libraries(),
        )

    def bindings(self, root: Path) -> tuple[Binding, ...]:
        """Exports of the JIT modules; the namespace is the Python function that loads the module."""
        texts = sorted(self._files(root).texts)
        found: list[Binding] = []
        for site in _sites(root).sites:
            module = PurePosixPath(site.file).with_suffix("").as_posix().replace("/", ".")
            for export in site.exports:
                function = export.function
                files = [path for name in site.cuda_files for path in texts if _names(path, name)]
                found.append(
                    Binding(
                        op=export.name,
                        namespace=f"{module}.{site.function}",
                        schema_text=f"{export.name} = {export.expression}",
                        host_function=function,
                        host_file=files[0] if files else None,
                        ambiguous="{" in function or not site.literal,
                    )
                )
        return tuple(sorted(found, key=lambda b: (b.namespace, b.op)))

    def with_callers(self, root: Path, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        """``bindings`` with the Python places that call each export of the same file."""
        calls = _sites(root).calls

        def own(binding: Binding) -> Binding:
            everywhere = calls.get(binding.op, ())
            module = binding.namespace.rsplit(".", 1)[0].replace(".", "/") + ".py"
            here = tuple(caller for caller in everywhere if caller.file == module)
            return binding.model_copy(update={"callers": here or everywhere})

        return tuple(own(binding) for binding in bindings)

    def accounting(self, root: Path) -> Accounting:
        """The JIT kernels' files; nothing is generated."""
        texts = self._files(root).texts
        texts = {path: text for path, text in texts.items() if path.startswith(self.own_folders(root))}
        return Accounting(texts, lambda path: _rocm_only(texts[path]), lambda path: False)

    def find(self, root: Path, name: str) -> tuple[Target, ...]:
        """Exports of that name, else the exports behind a Python function of that name, else kernels."""
        bindings = [b for b in self.bindings(root) if name in (b.op, f"{b.namespace}.{b.op}")]
        if not bindings:
            behind = _behind(root, name)
            bindings = [b for b in self.bindings(root) if (_module_file(b), b.op) in behind]
        files = self._files(root)
        targets = dict.fromkeys(
            Target(None, b.op, b.host_function, self._units_of(root, files, b)) for b in bindings if b.host_file
        )
        if targets:
            return tuple(targets)
        kernel = name.split("::")[-1]
        units = tuple(dict.fromkeys(u for path in files.kernels.get(kernel, ()) for u in files.units_of(path)))
        return (Target(name, None, None, units),) if units else ()

    def known_names(self, root: Path) -> tuple[str, ...]:
        """Exports, then kernels."""
        ops = {binding.op for binding in self.bindings(root)}
        return (*sorted(ops), *(kernel for kernel in self._files(root).kernels if kernel not in ops))

    def _units_of(self, root: Path, files: cuda_files.CudaFiles, binding: Binding) -> tuple[str, ...]:
        method = binding.host_function.split("::")[-1]
        assert binding.host_file is not None
        if binding.host_file in files.defining(method):
            return files.units_of(binding.host_file)[:1]
        return (binding.host_file,)

    def _files(self, root: Path) -> cuda_files.CudaFiles:
        folder = _need_jit_folder(root)
        folders = self.own_folders(root)
        return cuda_files.load(root, folders, self.units(root), (f"{folder}/include", f"{folder}/csrc"))


def _package(root: Path) -> Path | None:
    return next((root / name for name in _PACKAGES if (root / name / "__init__.py").is_file()), None)


def _jit_folder(root: Path) -> str | None:
    package = _package(root)
    if package is None:
        return None
    found = next((package / name for name in _JIT_FOLDERS if (package / name / "csrc").is_dir()), None)
    return found.relative_to(root).as_posix() if found else None


def _need_jit_folder(root: Path) -> str:
    folder = _jit_folder(root)
    if folder is None:
        raise BadInput(f"{root} holds no CUDA sources of SGLang", "Use a version from 0.5.0 on, or a checkout")
    return folder


def _rocm_only(text: str) -> bool:
    """A file that stops with #error unless USE_ROCM is defined, or includes HIP's headers whatever is defined."""
    if "ROCM" not in text and "hip/" not in text:
        return False
    plain = cpp_text.blank(text)
    guard = _ERROR_FOR_OTHERS.search(plain)
    if guard is not None:
        condition = guard[0].split("\n")[0]
        return "ifndef" in condition or re.search(r"!\s*defined", condition) is not None
    depth = 0
    for directive in re.finditer(r"^\s*#\s*(if|endif|include\s*<[\w/]*\bhip/)", plain, re.MULTILINE):
        depth += {"if": 1, "endif": -1}.get(directive[1], 0)
        if depth == 0 and directive[1].startswith("include"):
            return True
    return False


def _names(path: str, name: str) -> bool:
    """Whether ``name``, as given to the loader, is the file ``path``: relative to a csrc folder."""
    return path.endswith(f"/csrc/{name}")


def _needs_torch(unit: Path) -> bool:
    return unit.is_file() and any(name.startswith("torch/") for name, _ in cpp_text.includes(cpp_text.read(unit)))


def _vendored(root: Path, folder: str, unit: str) -> tuple[str, ...]:
    """Folders in the unit's own part of csrc that a load adds by a computed path: those its includes need."""
    if not unit.startswith(f"{folder}/csrc/"):
        return ()
    part = PurePosixPath(unit).relative_to(f"{folder}/csrc").parts[0]
    return _include_folders(root, folder, f"{folder}/csrc/{part}")


@lru_cache(maxsize=256)
def _include_folders(root: Path, folder: str, part: str) -> tuple[str, ...]:
    if not (root / part).is_dir():
        return ()
    below = [path for path in sorted((root / part).rglob("*")) if path.suffix in cuda_files.SUFFIXES]
    needed: set[str] = set()
    for path in below:
        known = (path.parent, root / folder / "include", root / folder / "csrc")
        for name, _quoted in cpp_text.includes(cpp_text.read(path)):
            if not any((place / name).is_file() for place in known):
                homes = [other for other in below if other.as_posix().endswith(f"/{name}")]
                needed.update(home.as_posix()[: -len(name) - 1] for home in homes)
    return tuple(sorted(Path(place).relative_to(root).as_posix() for place in needed))


@lru_cache(maxsize=8)
def _scan(root: Path, package: Path) -> jit_sites.Sites:
    return jit_sites.scan(root, package)


def _sites(root: Path) -> jit_sites.Sites:
    package = _package(root)
    if package is None:
        raise BadInput(f"{root} is no source of SGLang", "Give the folder that holds the package sglang")
    return _scan(root, package)


def _module_file(binding: Binding) -> str:
    return binding.namespace.rsplit(".", 1)[0].replace(".", "/") + ".py"


def _behind(root: Path, function: str) -> set[tuple[str, str]]:
    """(file, export) that a Python function reaches through calls within its own file."""
    sites = _sites(root)
    exports: dict[str, set[str]] = {}
    for site in sites.sites:
        exports.setdefault(site.file, set()).update(export.name for export in site.exports)
    found: set[tuple[str, str]] = set()
    for file, local in sites.wrappers.items():
        if function not in local or file not in exports:
            continue
        seen, ring = {function}, [function]
        while ring:
            called = {name for item in ring for name in local.get(item, ())} - seen
            found.update((file, name) for name in called & exports[file])
            seen |= called
            ring = [name for name in called if name in local]
    return found


@lru_cache(maxsize=8)
def _default_flags(folder: Path) -> tuple[list[str], str]:
    """The loader's default CUDA flags and the macro that holds the architecture, from its own Python."""
    flags: list[str] = []
    define = "SGL_CUDA_ARCH"
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8", errors="replace")
        macro = re.search(r"-D(\w*CUDA_ARCH\w*)=\{", source)
        if macro:
            define = macro[1]
        if "--expt-relaxed-constexpr" not in source or flags:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.List):
                texts = [text for text in map(jit_sites.text, node.elts) if text]
                if "--expt-relaxed-constexpr" in texts and any(t.startswith("-std=") for t in texts):
                    flags = [text for text in texts if text.startswith("-") and "{" not in text]
    return flags, define
