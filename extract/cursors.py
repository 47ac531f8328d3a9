"""Small questions to a syntax-tree cursor: qualified name, kernel or not, what an overloaded name may mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clang import cindex
from clang.cindex import CursorKind

FUNCTIONS = frozenset(
    {
        CursorKind.FUNCTION_DECL,
        CursorKind.FUNCTION_TEMPLATE,
        CursorKind.CXX_METHOD,
        CursorKind.CONSTRUCTOR,
        CursorKind.DESTRUCTOR,
        CursorKind.CONVERSION_FUNCTION,
    }
)
CLASSES = frozenset(
    {
        CursorKind.STRUCT_DECL,
        CursorKind.CLASS_DECL,
        CursorKind.CLASS_TEMPLATE,
        CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
    }
)
SCOPES = CLASSES | {CursorKind.NAMESPACE}


def qualified_name(cursor: Any) -> str:
    """``outer::inner::name``; anonymous namespaces are left out."""
    parts = [cursor.spelling]
    parent = cursor.semantic_parent
    while parent is not None and parent.kind in SCOPES:
        if parent.spelling and not parent.spelling.startswith("("):
            parts.append(parent.spelling)
        parent = parent.semantic_parent
    return "::".join(reversed(parts))


def is_kernel(cursor: Any) -> bool:
    """Whether a function, a template of one, or a specialisation is ``__global__``."""
    if cursor.kind not in FUNCTIONS:
        return False
    if any(child.kind == CursorKind.CUDAGLOBAL_ATTR for child in cursor.get_children()):
        return True
    template = cursor.specialized_template
    return template is not None and is_kernel(template)


def candidates(reference: Any) -> Iterator[Any]:
    """The declarations that a reference may mean: one, or all of an overload set."""
    target = reference.referenced
    if target is None:
        return
    if target.kind != CursorKind.OVERLOADED_DECL_REF:
        yield target
        return
    for index in range(cindex.conf.lib.clang_getNumOverloadedDecls(target)):
        declaration = cindex.conf.lib.clang_getOverloadedDecl(target, index)
        declaration._tu = target._tu  # the module has no wrapper that does this
        yield declaration
