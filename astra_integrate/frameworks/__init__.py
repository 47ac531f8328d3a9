"""The frameworks that astra knows, by name."""

from __future__ import annotations

from astra_integrate.errors import BadInput

from .base import Accounting, Framework, HeaderNeed, Target
from .sglang import SGLang
from .vllm import VLLM

__all__ = ["Accounting", "Framework", "HeaderNeed", "Target", "get", "names"]

_FRAMEWORKS: dict[str, Framework] = {framework.name: framework for framework in (VLLM(), SGLang())}


def names() -> tuple[str, ...]:
    """Names of all frameworks."""
    return tuple(_FRAMEWORKS)


def get(name: str) -> Framework:
    """The framework of that name; raises :class:`BadInput` for any other."""
    if name not in _FRAMEWORKS:
        raise BadInput(f"There is no framework {name!r}", f"Known are {', '.join(_FRAMEWORKS)}")
    return _FRAMEWORKS[name]
