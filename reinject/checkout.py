"""A git-tracked copy of a framework's source to put a candidate into, and the diff that comes out of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from astra_integrate.errors import BadInput, CheckFailed, MissingTool
from astra_integrate.records import Source

_LARGEST_BUILD_FILE = 1 << 20
_WHO = {"NAME": "astra", "EMAIL": "astra@localhost", "DATE": "2000-01-01T00:00:00+0000"}


def checkout(source: Source, folders: Sequence[str], folder: Path, *, git: Path | None = None) -> Path:
    """Copy what of ``source`` can be edited and built into ``folder``, as a git repository with one commit.

    Args:
        source: the source; it stays untouched.
        folders: the framework's own folders, relative to the source's root.
        folder: where to; a copy of the same source that is there already is set back to its commit.
        git: the program; None looks for it on ``PATH``.

    Copied are the folders, the CMake folders, and the files at the root that are no larger than a MiB.
    Files keep their bytes: git neither converts line ends nor ignores any file here.
    Raises :class:`BadInput` where ``folder`` holds anything else, :class:`MissingTool` without git.
    """
    folder = folder.resolve()
    if is_copy(folder, source, git=git):
        run_git(folder, "reset", "-q", "--hard", git=git)
        run_git(folder, "clean", "-q", "-f", "-d", "-x", git=git)
        return folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there and isn't a copy of {source.spec}", "Choose another folder or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Made beside its place and renamed: a copy that was interrupted can't be taken for a whole one.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work:
        made = Path(work) / "copy"
        made.mkdir()
        for file in _files(Path(source.root), folders):
            (made / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(Path(source.root) / file, made / file)
        run_git(made, "init", "-q", "-b", "main", git=git)
        (made / ".git" / "info").mkdir(exist_ok=True)
        (made / ".git" / "info" / "attributes").write_text("* -text diff\n", encoding="ascii")
        run_git(made, "add", "-A", "-f", git=git)
        run_git(made, "commit", "-q", "--allow-empty", "-m", _label(source), git=git)
        if folder.exists():
            folder.rmdir()
        made.rename(folder)
    return folder


def is_copy(folder: Path, source: Source, *, git: Path | None = None) -> bool:
    """Whether ``folder`` is what :func:`checkout` makes of ``source``, changed or not."""
    if not (folder / ".git").is_dir():
        return False
    return run_git(folder, "log", "-1", "--format=%B", git=git).decode("utf-8", "replace").strip() == _label(source)


def _label(source: Source) -> str:
    return f"original: {source.spec} {source.content}"


def diff(folder: Path, *, git: Path | None = None) -> str:
    """What was changed in ``folder`` since its commit, as a unified diff (UTF-8 with surrogateescape)."""
    return run_git(folder, "diff", "--no-color", "--no-ext-diff", "HEAD", git=git).decode("utf-8", "surrogateescape")


def changed_files(folder: Path, *, git: Path | None = None) -> tuple[str, ...]:
    """Files of ``folder`` that differ from its commit."""
    names = run_git(folder, "diff", "--name-only", "-z", "HEAD", git=git).split(b"\0")
    return tuple(name.decode("utf-8", "surrogateescape") for name in names if name)


def verify(folder: Path, patch: str, *, git: Path | None = None) -> None:
    """Apply ``patch`` by ``git apply`` to a clean copy of the commit; every file must then equal that in ``folder``.

    Raises :class:`CheckFailed` where git refuses the patch or the result differs, naming the file.
    """
    with tempfile.TemporaryDirectory(prefix="astra-clean-") as work:
        clean = Path(work) / "clean"
        run_git(folder, "worktree", "add", "-q", "--detach", str(clean), "HEAD", git=git)
        try:
            (Path(work) / "change.patch").write_bytes(patch.encode("utf-8", "surrogateescape"))
            if patch:
                run_git(clean, "apply", "--whitespace=nowarn", "../change.patch", git=git)
            touched = set(changed_files(folder, git=git)) | set(changed_files(clean, git=git))
            for file in sorted(touched):
                if (clean / file).read_bytes() != (folder / file).read_bytes():
                    raise CheckFailed(f"The diff does not give the same {file} when it is applied to a clean copy")
        finally:
            run_git(folder, "worktree", "remove", "--force", str(clean), git=git)


def run_git(folder: Path, *arguments: str, git: Path | None = None) -> bytes:
    """Run git in ``folder`` without the user's own configuration; raises CheckFailed with git's words."""
    program = str(git) if git else shutil.which("git")
    if program is None:
        raise MissingTool("git is missing", "Install git (for example: apt install git)")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update({"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"})
    for role in ("AUTHOR", "COMMITTER"):
        environment.update({f"GIT_{role}_{part}": value for part, value in _WHO.items()})
    command = [program, "-c", "core.autocrlf=false", "-c", "core.quotepath=false", "-c", "gc.auto=0", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip() or f"code {done.returncode}"
        raise CheckFailed(f"git {arguments[0]} failed in {folder}: {words}")
    return done.stdout


def _files(root: Path, folders: Sequence[str]) -> Iterator[Path]:
    """Files to copy, relative to ``root``."""
    seen: set[Path] = set()
    cmake = [path.name for path in sorted(root.iterdir()) if path.is_dir() and any(path.glob("*.cmake"))]
    for name in (*folders, *cmake):
        for path in sorted((root / name).rglob("*")):
            file = path.relative_to(root)
            if path.is_file() and not {".git", "__pycache__"} & set(file.parts) and file not in seen:
                seen.add(file)
                yield file
    for path in sorted(root.iterdir()):
        if path.is_file() and path.stat().st_size <= _LARGEST_BUILD_FILE:
            yield path.relative_to(root)
