from __future__ import annotations

import ast
import configparser
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from .conftest import LINKED

FRAMEWORKS = {"vllm", "sglang", "torch", "sglang-kernel", "flashinfer-python", "apache-tvm-ffi"}


def read(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (found,) = (member for member in archive.namelist() if member.endswith(f".dist-info/{name}"))
        return archive.read(found).decode()


def _imports(path: Path) -> set[str]:
    """Top-level names of all absolute imports in the file, nested ones too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found - {"astra_integrate"}


@pytest.fixture
def metadata(wheel: Path) -> Message:
    return Parser().parsestr(read(wheel, "METADATA"))


@pytest.fixture
def requirements(metadata: Message) -> list[Requirement]:
    return [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]


def test_no_framework_is_a_dependency_even_of_an_extra(requirements: list[Requirement]) -> None:
    assert requirements
    assert not FRAMEWORKS & {requirement.name.lower() for requirement in requirements}


def test_the_package_named_openai_agents_is_none_either(requirements: list[Requirement]) -> None:
    # It owns a top-level module `agents`.
    assert "openai-agents" not in {requirement.name.lower() for requirement in requirements}


def test_every_dependency_is_given_by_a_range_with_a_lower_bound(requirements: list[Requirement]) -> None:
    for requirement in requirements:
        operators = {part.operator for part in requirement.specifier}
        assert ">=" in operators, str(requirement)
        assert not operators & {"==", "==="}, str(requirement)


def test_what_the_code_imports_is_declared(checkout: Path, metadata: Message, requirements: list[Requirement]) -> None:
    declared = {canonicalize_name(requirement.name) for requirement in requirements}
    declared.add("pydantic-core")  # pydantic pins it exactly: a range of our own could only clash
    owners = packages_distributions()
    # What comes by way of another package today may not tomorrow.
    imported: dict[str, Path] = {}
    for folder in ("astra_integrate", *LINKED):
        for path in (checkout / folder).rglob("*.py"):
            imported.update(dict.fromkeys(_imports(path), path))
    undeclared = {
        name: str(path)
        for name, path in imported.items()
        if name in owners and not declared & {canonicalize_name(owner) for owner in owners[name]}
    }
    assert not undeclared


def test_extras(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {"gpu", "mcp", "dev"}


def test_pythons(metadata: Message) -> None:
    wanted = SpecifierSet(metadata["Requires-Python"])
    assert [v for v in ("3.10.9", "3.11.0", "3.12.1", "3.13.0", "3.14.0") if v in wanted] == [
        "3.11.0",
        "3.12.1",
        "3.13.0",
    ]


def test_licence_files_and_entry_point(metadata: Message, wheel: Path) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("License-File", [])) == {"LICENSE", "THIRD_PARTY_NOTICES.md"}
    assert "Apache License" in read(wheel, "licenses/LICENSE")
    entry = configparser.ConfigParser()
    entry.read_string(read(wheel, "entry_points.txt"))
    assert dict(entry["console_scripts"]) == {"astra": "astra_integrate.cli:main"}


def test_only_one_top_level_name_is_installed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" not in name}
    assert tops == {"astra_integrate"}
