"""From a name that a user typed to the one op or kernel that it means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from .errors import BadInput
from .frameworks.base import Framework, Target


def near(name: str, known: Iterable[str], limit: int = 5) -> list[str]:
    """Known names closest to ``name``, best first: spelling distance, then names that contain it."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=limit, cutoff=0.6)
    inside = [other for other in names if name.lower() in other.lower() and other not in close]
    return (close + inside)[:limit]


def choose(framework: Framework, root: Path, name: str) -> Target:
    """The target that ``name`` means; raises :class:`BadInput` with near names where there is none.

    An op wins over a kernel of the same name, since the op is what users call. A name that several
    namespaces register is refused with the ways to say which one is meant.
    """
    targets = framework.find(root, name)
    if not targets:
        suggestions = near(name.rsplit("::", 1)[-1], framework.known_names(root))
        hint = f"Did you mean {', '.join(suggestions)}?" if suggestions else "List them with `astra index SOURCE`"
        raise BadInput(f"{framework.name} has no kernel or op named {name!r} here", hint)
    ops = [target for target in targets if target.op is not None]
    chosen = ops or list(targets)
    distinct = {(target.op, target.kernel, target.units) for target in chosen}
    if len(distinct) > 1:
        ways = ", ".join(sorted(f"{t.op or t.kernel} ({', '.join(t.units)})" for t in chosen))
        raise BadInput(f"{name!r} is ambiguous: {ways}", "Give the qualified name (namespace::name)")
    return chosen[0]
