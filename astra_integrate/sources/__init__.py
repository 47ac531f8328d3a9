"""Where framework source comes from: a release, a git ref, a path, an installation → :class:`Source`."""

from __future__ import annotations

from .. import frameworks
from ..records import Source
from ..settings import Settings
from .spec import Spec
from .spec import parse_spec as _parse

__all__ = ["Spec", "parse_spec", "resolve"]


def parse_spec(spec: str) -> Spec:
    """Take SOURCE as the user wrote it apart; raises :class:`BadInput` that names what is near."""
    return _parse(spec, frameworks.names())


def resolve(spec: str, settings: Settings) -> Source:
    """The source tree that ``spec`` means, on disk and complete.

    The tree is shared and read-only by agreement: work on a copy. Exact releases, tags and commits
    that were taken before need no network. Raises ``BadInput``, ``FetchFailed`` or ``MissingTool``.
    """
    asked = parse_spec(spec)
    if asked.kind == "path":
        from .local import path_source

        assert asked.path is not None
        return path_source(tuple(frameworks.get(name) for name in frameworks.names()), asked.path, str(asked), settings)
    assert asked.framework is not None
    framework = frameworks.get(asked.framework)
    if asked.kind == "git":
        from .git import git_source

        assert asked.ref is not None
        return git_source(framework, asked.ref, str(asked), settings)
    if asked.kind == "installed":
        from .local import installed_source

        return installed_source(framework, asked.python, str(asked))
    from .release import release_source

    return release_source(framework, asked.version, str(asked), settings)
