"""What vLLM's own CMake files compile, and with which flags, at one version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from .cmake_conditions import version
from .cmake_eval import Evaluation, Native, as_list
from .cmake_text import commands

_COMPILER = "13.0"
# torch.utils.cpp_extension.COMMON_NVCC_FLAGS, which the build asks an installed torch for.
TORCH_NVCC_FLAGS = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)
_OPTIMISED = {"RelWithDebInfo": "-O2", "Release": "-O3"}


@dataclass
class Target:
    """One extension library: its sources, compiler options and definitions."""

    language: str
    sources: list[str]
    options: list[str]
    includes: list[str]
    definitions: list[str]


NO_TARGET = Target("CUDA", [], [], ["csrc"], [])


@dataclass
class SourceOptions:
    """What the build sets for one file: options, folders, architectures (``9.0a``, ``8.0+PTX``)."""

    options: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)
    archs: list[str] = field(default_factory=list)


@dataclass
class Build:
    """The outcome of one evaluation."""

    targets: dict[str, Target] = field(default_factory=dict)
    sources: dict[str, SourceOptions] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    build_type: str = ""

    def source(self, path: str) -> SourceOptions:
        """The options of ``path``, made on first use."""
        return self.sources.setdefault(path, SourceOptions())

    def compiled(self) -> set[str]:
        """Every file that belongs to a target."""
        return {source for target in self.targets.values() for source in target.sources}


def evaluate(root: Path, language: str) -> Build:
    """Evaluate the build of the source tree ``root`` for ``language`` (``CUDA`` or ``HIP``)."""
    stamps = tuple((path.stat().st_mtime_ns, path.stat().st_size) for path in _files(root))
    return _evaluate(root, language, stamps)


def _files(root: Path) -> list[Path]:
    return [path for path in (root / "cmake" / "utils.cmake", root / "CMakeLists.txt") if path.is_file()]


@lru_cache(maxsize=16)
def _evaluate(root: Path, language: str, stamps: tuple[tuple[int, int], ...]) -> Build:
    del stamps  # only there so that a changed file is read anew
    build = Build()
    evaluation = Evaluation(_variables(root, language), _Natives(build, root).table())
    for path in _files(root):
        evaluation.run(commands(path.read_text(encoding="utf-8", errors="surrogateescape")))
    build.variables = evaluation.variables
    setup = root / "setup.py"
    if setup.is_file():
        found = re.search(r'else "(RelWithDebInfo|Release)"', setup.read_text(encoding="utf-8", errors="replace"))
        build.build_type = found[1] if found else ""
    return build


def optimisation(build: Build) -> tuple[str, str]:
    """nvcc's optimisation flag of the default build type, and the name of that type."""
    kind = build.build_type or "RelWithDebInfo"
    return _OPTIMISED[kind], kind


def _variables(root: Path, language: str) -> dict[str, str]:
    known = {
        "CMAKE_CURRENT_LIST_DIR": str(root),
        "CMAKE_CURRENT_SOURCE_DIR": str(root),
        "CMAKE_SOURCE_DIR": str(root),
        "CMAKE_CXX_COMPILER_ID": "GNU",
        "CMAKE_CXX_COMPILER_VERSION": "13.0",
        "CMAKE_SYSTEM_PROCESSOR": "x86_64",
        "VLLM_PYTHON_EXECUTABLE": "python3",
        "NVCC_EXECUTABLE": "nvcc",
    }
    if language == "CUDA":
        known |= {
            "CUDA_FOUND": "TRUE",
            "CUDA_VERSION": _COMPILER,
            "CMAKE_CUDA_COMPILER_VERSION": _COMPILER,
        }
    else:
        known |= {"HIP_FOUND": "TRUE", "VLLM_TARGET_DEVICE": "rocm"}
    return known


class _Natives:
    """The commands that mean something here, writing what they learn into ``build``."""

    def __init__(self, build: Build, root: Path) -> None:
        self._build = build
        self._root = root

    def table(self) -> dict[str, Native]:
        """Commands by name."""
        return {
            "run_python": self._run_python,
            "extract_unique_cuda_archs_ascending": self._supported_archs,
            "override_gpu_arches": self._hip_archs,
            "cuda_archs_loose_intersection": self._intersect,
            "set_gencode_flags_for_srcs": self._gencode,
            "define_extension_target": self._extension,
            "target_compile_definitions": self._definitions,
            "set_source_files_properties": self._source_properties,
            "set_property": self._source_property,
            "file": self._globbed,
            **{name: _nothing for name in _IRRELEVANT},
        }

    def _run_python(self, evaluation: Evaluation, words: list[str]) -> None:
        asked_for_torch = "COMMON_NVCC_FLAGS" in words[1]
        evaluation.variables[words[0]] = ";".join(TORCH_NVCC_FLAGS) if asked_for_torch else ""

    def _supported_archs(self, evaluation: Evaluation, words: list[str]) -> None:
        evaluation.put(words[0], evaluation.get("CUDA_SUPPORTED_ARCHS"))

    def _hip_archs(self, evaluation: Evaluation, words: list[str]) -> None:
        evaluation.put(words[0], evaluation.get("HIP_SUPPORTED_ARCHS"))

    def _intersect(self, evaluation: Evaluation, words: list[str]) -> None:
        evaluation.put(words[0], loose_intersection(as_list(words[1]), as_list(words[2])))

    def _gencode(self, evaluation: Evaluation, words: list[str]) -> None:
        keywords = _keywords(words, ("SRCS", "CUDA_ARCHS", "BUILD_PTX_FOR_ARCH"))
        for source in keywords["SRCS"]:
            known = self._build.source(source).archs
            known.extend(arch for arch in keywords["CUDA_ARCHS"] if arch not in known)

    def _extension(self, evaluation: Evaluation, words: list[str]) -> None:
        keywords = _keywords(words[1:], _EXTENSION)
        self._build.targets[words[0]] = Target(
            language="".join(keywords["LANGUAGE"]),
            sources=list(dict.fromkeys(keywords["SOURCES"])),
            options=keywords["COMPILE_FLAGS"],
            includes=["csrc", *keywords["INCLUDE_DIRECTORIES"]],
            definitions=[f"TORCH_EXTENSION_NAME={words[0]}"],
        )

    def _definitions(self, evaluation: Evaluation, words: list[str]) -> None:
        if words[0] in self._build.targets:
            given = [word.removeprefix("-D") for word in words[1:] if word not in _SCOPES]
            self._build.targets[words[0]].definitions.extend(given)

    def _source_properties(self, evaluation: Evaluation, words: list[str]) -> None:
        if "PROPERTIES" not in words:
            return
        at = words.index("PROPERTIES")
        for name, value in zip(words[at + 1 :: 2], words[at + 2 :: 2], strict=False):
            _property(self._build, words[:at], name, [value])

    def _source_property(self, evaluation: Evaluation, words: list[str]) -> None:
        if words[:1] == ["SOURCE"] and "PROPERTY" in words:
            at = words.index("PROPERTY")
            sources = [word for word in words[1:at] if word not in ("APPEND", "APPEND_STRING")]
            _property(self._build, sources, words[at + 1], words[at + 2 :])

    def _globbed(self, evaluation: Evaluation, words: list[str]) -> None:
        if words[0] == "GLOB":
            evaluation.put(
                words[1], sorted(str(p.relative_to(self._root)) for w in words[2:] for p in self._root.glob(w))
            )


def _nothing(evaluation: Evaluation, words: list[str]) -> None:
    """A project's function that has no bearing on sources and flags."""


_IRRELEVANT = (
    "find_python_from_executable",
    "append_cmake_prefix_path",
    "hipify_sources_target",
    "vllm_finalize_hipify_target",
    "vllm_prepare_torch_gomp_shim",
    "clear_cuda_arches",
    "clear_cuda_gencode_flags",
    "warn_if_ptx_arch_requested",
    "set_gencode_flag_for_srcs",
)
_SCOPES = ("PRIVATE", "PUBLIC", "INTERFACE")
_EXTENSION = (
    *("DESTINATION", "LANGUAGE", "SOURCES", "COMPILE_FLAGS", "ARCHITECTURES", "INCLUDE_DIRECTORIES"),
    *("LIBRARIES", "USE_SABI", "WITH_SOABI"),
)


def _keywords(words: Iterable[str], names: tuple[str, ...]) -> dict[str, list[str]]:
    """Words after each keyword, like cmake_parse_arguments; a keyword may come twice."""
    found: dict[str, list[str]] = {name: [] for name in names}
    current: list[str] = []
    for word in words:
        if word in found:
            current = found[word]
        else:
            current.extend(as_list(word))
    return found


def _property(build: Build, sources: list[str], name: str, values: list[str]) -> None:
    for source in (part for word in sources for part in as_list(word)):
        options = build.source(source)
        for value in values:
            # "$<$<COMPILE_LANGUAGE:CUDA>:a;b>": the options inside, for CUDA files, which these are.
            plain = re.sub(r"^\$<\$<COMPILE_LANGUAGE:\w+>:(.*)>$", r"\1", value)
            if name in ("COMPILE_FLAGS", "COMPILE_OPTIONS"):
                options.options.extend(part for item in as_list(plain) for part in item.split())
            elif name == "COMPILE_DEFINITIONS":
                options.options.extend(f"-D{item.removeprefix('-D')}" for item in as_list(plain))
            elif name == "INCLUDE_DIRECTORIES":
                options.includes.extend(as_list(plain))


def loose_intersection(wanted: list[str], built: list[str]) -> list[str]:
    """The build's own rule: for each ``built`` architecture the best ``wanted`` one that serves it.

    ``9.0a``/``10.0f`` need the same number among ``built`` (``f`` also the same major), plain numbers serve
    what is not older and of the same major, ``+PTX`` any later one.
    """
    left = list(built)
    found: list[str] = []
    plain: list[tuple[str, bool]] = []
    for arch in wanted:
        base = arch.removesuffix("+PTX")
        if base[-1:] not in ("a", "f"):
            plain.append((base, arch != base))
            continue
        number = base[:-1]
        serves = [b for b in left if b.rstrip("af") == number]
        if not serves and base.endswith("f"):
            serves = [b for b in left if version(b).major == version(number).major][:1]
        if serves:
            found.append(base)
            left = [b for b in left if b not in serves]
    plain.sort(key=lambda item: version(item[0]))
    for arch in left:
        best = ""
        for base, ptx in plain:
            if version(base) <= version(arch) and (ptx or version(base).major == version(arch).major):
                best = base + ("+PTX" if ptx else "")
        if best:
            found.append(best)
    return list(dict.fromkeys(found))
