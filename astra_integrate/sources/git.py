"""Any tag, branch or commit of a framework's repository, as a plain tree; the repository is a bare mirror in the cache.

Only what is asked for is fetched (depth 1). Submodules are not: neither framework's CUDA code is in one.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from ..errors import BadInput, FetchFailed, MissingTool
from ..frameworks.base import Framework
from ..progress import step
from ..records import Source, digest_of
from ..settings import Settings
from .cache import hold, locked, place, read_note, staged, write_note
from .content import has_cuda
from .disk import FREE_SPACE
from .index import suggestion
from .pip_configuration import without_secrets

if TYPE_CHECKING:
    from git import Git

log = logging.getLogger(__name__)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHORT = re.compile(r"[0-9a-f]{4,40}")
_ASK_SECONDS = 120
_FETCH_SECONDS = 1800


def git_source(framework: Framework, ref: str, spec: str, settings: Settings) -> Source:
    """The tree at ``ref``. Tags and full commits seen before need no network; a branch is asked for again.

    Raises ``MissingTool`` without git, :class:`BadInput` for an unknown ref (near ones named) and
    ``FetchFailed`` for a repository that can't be reached.
    """
    mirror = _Mirror(framework, settings)
    known = ref if _COMMIT.fullmatch(ref) else mirror.note.get("tags", {}).get(ref)
    if known is not None and (source := _cached(framework, known, ref, spec, settings)) is not None:
        return source
    with locked(mirror.folder):
        commit = mirror.commit(ref)
        if (source := _cached(framework, commit, ref, spec, settings)) is not None:
            return source
        target = _tree(framework, commit, settings)
        with step(f"Checking out {framework.name} at {ref}"), locked(target):
            if not target.is_dir():
                with staged(target) as building:
                    mirror.export(commit, building)
        detected = framework.detect(target)
        if detected is None or not any(has_cuda(target / folder) for folder in framework.own_folders(target)):
            why = f"is no {framework.name} source tree" if detected is None else "holds no CUDA source"
            raise BadInput(f"{spec} ({commit[:12]} of {mirror.shown}) {why}", "Take another tag, branch or commit")
        write_note(_note_path(framework, commit, settings), {"tree": mirror.tree(commit), "detected": detected})
    found = _cached(framework, commit, ref, spec, settings)
    if found is None:
        raise FetchFailed(f"The cache was cleared while {spec} was checked out", "Run the command again")
    return found


def version_of(ref: str, commit: str, detected: str) -> str:
    """A release tag's version, else the tree's own marked with the commit."""
    try:
        return str(Version(ref.removeprefix("refs/tags/")))
    except InvalidVersion:
        return f"{detected.partition('+')[0]}+g{commit[:8]}"


def _tree(framework: Framework, commit: str, settings: Settings) -> Path:
    return place(settings, "sources") / f"{framework.name}-git-{commit[:16]}"


def _note_path(framework: Framework, commit: str, settings: Settings) -> Path:
    return place(settings, "sources") / f"{framework.name}-git-{commit}.json"


def _cached(framework: Framework, commit: str, ref: str, spec: str, settings: Settings) -> Source | None:
    note = read_note(_note_path(framework, commit, settings))
    root = _tree(framework, commit, settings)
    if note is None or not root.is_dir():
        return None
    return Source(
        framework=framework.name,
        version=version_of(ref, commit, str(note.get("detected"))),
        spec=spec,
        kind="git",
        root=str(hold(root)),
        content=digest_of(str(note.get("tree"))),
    )


class _Mirror:
    """The bare repository of one framework and URL, with a note of the refs that were seen."""

    def __init__(self, framework: Framework, settings: Settings) -> None:
        self.name = framework.name
        self.url = getattr(settings, f"{framework.name}_repository", None) or framework.repository
        self.shown = without_secrets(self.url) if "://" in self.url else self.url
        self.offline = settings.offline
        self.folder = place(settings, "git") / f"{framework.name}-{digest_of(self.url)[:8]}.git"
        self._note_path = self.folder.with_suffix(".json")
        self.note: dict[str, Any] = read_note(self._note_path) or {}

    def commit(self, ref: str) -> str:
        """The commit that ``ref`` means now, fetched into the mirror."""
        if self.offline:
            return self._last_known(ref, "ASTRA_OFFLINE is set")
        try:
            refs = self._remote_refs()
        except FetchFailed as error:
            return self._last_known(ref, error.message)
        name = next(
            (name for name in (ref, f"refs/tags/{ref}", f"refs/heads/{ref}", f"refs/{ref}") if name in refs), None
        )
        if name is not None:
            commit = refs.get(f"{name}^{{}}", refs[name])
            commit = commit if self._has(commit) else self._fetch(name)
            self._remember("tags" if name.startswith("refs/tags/") else "branches", ref, commit)
            return commit
        if _SHORT.fullmatch(ref) and (found := self._by_hash(ref)) is not None:
            return found
        shown = [
            name.split("/", 2)[2] for name in refs if name.startswith(("refs/tags/", "refs/heads/")) and "^" not in name
        ]
        raise BadInput(f"{self.shown} has no tag, branch or commit {ref!r}", suggestion(ref, sorted(shown, key=_age)))

    def _last_known(self, ref: str, why: str) -> str:
        seen = {**self.note.get("branches", {}), **self.note.get("tags", {})}
        commit = seen.get(ref) or (self._resolve(ref) if _SHORT.fullmatch(ref) else None)
        if commit is None or not self._has(commit):
            raise FetchFailed(
                f"{self.name}@{ref} is not in the cache and can't be fetched: {why}",
                f"Go online or set ASTRA_{self.name.upper()}_REPOSITORY to a repository that can be reached",
            )
        log.warning("%s; taking %s@%s as it was last seen, %s", why, self.name, ref, commit[:12])
        return str(commit)

    def _by_hash(self, ref: str) -> str | None:
        """A commit by its (short) hash: in the mirror, by asking for it, else among all branches and tags."""
        if (found := self._resolve(ref)) is not None:
            return found
        if _COMMIT.fullmatch(ref):
            try:
                return self._fetch(ref)
            except FetchFailed as error:
                log.debug("the server gives no single commit: %s", error)
        arguments = ["--unshallow"] if (self.folder / "shallow").exists() else []
        with step(f"Fetching the whole history of {self.name} to look for {ref}"):
            self._run("fetch", "--tags", "--force", *arguments, "--", self.url, "+refs/heads/*:refs/heads/*")
        return self._resolve(ref)

    def _fetch(self, name: str) -> str:
        """Fetch one ref or commit without its history; the commit."""
        with step(
            f"Fetching {self.name} {name.removeprefix('refs/tags/').removeprefix('refs/heads/')} from its repository"
        ):
            self._run("fetch", "--depth", "1", "--no-tags", "--", self.url, name)
        commit = self._resolve("FETCH_HEAD")
        if commit is None:
            raise FetchFailed(f"{name} of {self.shown} is no commit", "Take another tag, branch or commit")
        self._run("update-ref", f"refs/astra/{commit}", commit)  # keeps it from being collected
        return commit

    def _remember(self, kind: str, ref: str, commit: str) -> None:
        self.note.setdefault(kind, {})[ref] = commit
        write_note(self._note_path, self.note)

    def _remote_refs(self) -> dict[str, str]:
        with step(f"Asking the repository of {self.name} for its refs"):
            listed = self._run("ls-remote", "--", self.url, seconds=_ASK_SECONDS)
        return {name: commit for commit, _, name in (line.partition("\t") for line in listed.splitlines())}

    def _has(self, commit: str) -> bool:
        return self._resolve(commit) is not None and (self.folder / "objects").is_dir()

    def _resolve(self, name: str) -> str | None:
        """The commit called ``name`` in the mirror, or None."""
        try:
            # A tree that isn't complete must not count: a shallow fetch brings commit and tree together.
            return self._run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") or None
        except FetchFailed:
            return None

    def tree(self, commit: str) -> str:
        """The id of the commit's tree."""
        return self._run("rev-parse", f"{commit}^{{tree}}")

    def export(self, commit: str, folder: Path) -> None:
        """Write the commit's files to ``folder``, bytes as stored, without a link back to the mirror."""
        folder.mkdir()
        index = {"GIT_INDEX_FILE": str(folder / ".astra-index")}
        here = [f"--work-tree={folder}", "-c", "core.autocrlf=false"]
        self._run("read-tree", commit, before=here, environment=index)
        self._run("checkout-index", "--all", "--force", before=here, environment=index, where=folder)
        (folder / ".astra-index").unlink()

    def _run(
        self,
        *arguments: str,
        before: list[str] | None = None,
        environment: dict[str, str] | None = None,
        where: Path | None = None,
        seconds: int = _FETCH_SECONDS,
    ) -> str:
        """Run git on the mirror; its output. Raises ``FetchFailed`` with git's own last words."""
        git, failure = _gitpython()
        if not (self.folder / "HEAD").exists():
            git(str(self.folder.parent)).execute(["git", "init", "--quiet", "--bare", str(self.folder)])
        command = ["git", f"--git-dir={self.folder}", *(before or []), *arguments]
        variables = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C", **(environment or {})}
        variables.setdefault("GIT_SSH_COMMAND", os.environ.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"))
        try:
            output = git(str(where or self.folder)).execute(command, env=variables, kill_after_timeout=seconds)
        except failure as error:
            told = self._last_words(str(error.stderr))
            if "No space left" in str(error.stderr):
                raise FetchFailed(f"No disk space left in {self.folder.parent} for {self.name}", FREE_SPACE) from error
            raise FetchFailed(
                f"The git repository {self.shown} can't be used for {arguments[0]}: {told}",
                f"Check the network, or set ASTRA_{self.name.upper()}_REPOSITORY to a repository that can be reached",
            ) from error
        return str(output)

    def _last_words(self, text: str) -> str:
        lines = [line.strip(" '\n") for line in text.replace("stderr:", "").splitlines()]
        told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or [
            line for line in lines if line
        ]
        return (told[0] if told else "no answer").replace(self.url, self.shown)


def _gitpython() -> tuple[type[Git], Any]:
    """GitPython, imported late: its import fails where there is no git, which concerns only git sources."""
    if shutil.which("git") is None:
        raise MissingTool("There is no git", "Install git (Debian: apt-get install git)")
    from git import Git
    from git.exc import GitCommandError

    return Git, GitCommandError


def _age(name: str) -> tuple[int, Any]:
    """Sorts refs: releases first, newest first, then other names."""
    try:
        version = Version(name)
    except InvalidVersion:
        return (1, name)
    release = (*version.release, 0, 0, 0, 0)[:4]
    return (0, tuple(-part for part in release))
