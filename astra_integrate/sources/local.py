"""A source tree that the user already has: a checkout, an unpacked archive, an archive file, an installation."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..errors import BadInput
from ..frameworks.base import Framework
from ..records import Source
from ..settings import Settings
from .archive import is_archive
from .content import content_digest, has_cuda
from .release import archive_source

# Runs in the other environment's interpreter: standard library only, the framework isn't imported.
_ASK = """
import importlib.metadata, json, sys
there = importlib.metadata.distribution(sys.argv[1])
print(json.dumps([there.version, str(there.locate_file("")), there.read_text("direct_url.json")]))
"""


def path_source(frameworks: tuple[Framework, ...], path: Path, spec: str, settings: Settings) -> Source:
    """The tree or archive at ``path``; which framework it is and its version are read from it.

    Raises :class:`BadInput` where there is nothing, nothing known, or no CUDA source.
    """
    root = Path(os.path.realpath(path))
    if not os.path.exists(root):  # unlike Path.exists, False for a name that can't be one
        raise BadInput(f"{path} does not exist", "Give the folder that holds the framework's repository or package")
    if root.is_file():
        if is_archive(root):
            return archive_source(frameworks, root, spec, settings)
        raise BadInput(f"{path} is neither a folder nor a source archive", "Give a folder, an sdist or a wheel")
    for framework in frameworks:
        version = framework.detect(root)
        if version is not None:
            return _tree_source(framework, version, root, spec, "path")
    for framework in frameworks:
        if any(framework.detect(parent) is not None for parent in root.parents[:3]):
            parent = next(parent for parent in root.parents[:3] if framework.detect(parent) is not None)
            raise BadInput(f"{path} lies inside a {framework.name} tree", f"Give its top folder {parent}")
    known = ", ".join(framework.name for framework in frameworks)
    if not has_cuda(root):
        raise BadInput(f"{path} holds no CUDA source", f"Give the top folder of a source tree of: {known}")
    raise BadInput(f"{path} is no source tree of a known framework", f"Known are: {known}")


def installed_source(framework: Framework, python: Path | None, spec: str) -> Source:
    """The framework as it is installed for ``python`` (None: for this interpreter); it isn't imported."""
    found = _here(framework.project) if python is None else _elsewhere(framework.project, python)
    if found is None:
        whose = f"for {python}" if python else "for the Python that runs astra"
        raise BadInput(
            f"{framework.name} is not installed {whose}",
            f"Write installed:{framework.name}:/path/to/its/python or {framework.name}==VERSION",
        )
    version, folder, direct = found
    root = _editable(direct) or Path(folder)
    return _tree_source(framework, version, root.resolve(), spec, "installed")


def _tree_source(framework: Framework, version: str, root: Path, spec: str, kind: str) -> Source:
    content = content_digest(framework, root)
    return Source.model_validate(
        {
            "framework": framework.name,
            "version": version,
            "spec": spec,
            "kind": kind,
            "root": str(root),
            "content": content,
        }
    )


def _here(project: str) -> tuple[str, str, str | None] | None:
    try:
        there = importlib.metadata.distribution(project)
    except importlib.metadata.PackageNotFoundError:
        return None
    return there.version, str(there.locate_file("")), there.read_text("direct_url.json")


def _elsewhere(project: str, python: Path) -> tuple[str, str, str | None] | None:
    """The same, asked of another interpreter; raises :class:`BadInput` where that can't be run."""
    try:
        asked = subprocess.run(
            [str(python), "-c", _ASK, project], cwd="/", capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(f"The Python {python} can't be run ({error})", "Give the path of an interpreter") from error
    if asked.returncode != 0:
        if "PackageNotFoundError" in asked.stderr:
            return None
        last = (asked.stderr.strip().splitlines() or ["no output"])[-1]
        raise BadInput(f"{python} can't tell what is installed: {last}", "Give the path of a Python interpreter")
    try:
        version, folder, direct = json.loads(asked.stdout)
    except ValueError as error:
        raise BadInput(f"{python} is no Python interpreter", "Give the path of a Python interpreter") from error
    return str(version), str(folder), direct


def _editable(direct_url: str | None) -> Path | None:
    """The checkout behind an editable installation."""
    try:
        told = json.loads(direct_url or "{}")
    except ValueError:
        return None
    if not isinstance(told, dict) or not told.get("dir_info", {}).get("editable"):
        return None
    url = urlsplit(str(told.get("url", "")))
    return Path(unquote(url.path)) if url.scheme == "file" else None
