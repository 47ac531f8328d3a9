"""Code and diffs as coloured HTML; whatever the text holds, the result is text in ``<span>``s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pygments
from markupsafe import Markup, escape
from pygments.formatters import html
from pygments.lexers import c_like

from .text import visible

# pygments has no types of its own.
_highlight: Callable[[str, Any, Any], str] = pygments.highlight
_Formatter: Any = html.HtmlFormatter
_Lexer: Any = c_like.CudaLexer
_LEXER = _Lexer(stripnl=False, ensurenl=False)
_FORMATTER = _Formatter(nowrap=True, classprefix="k-")
# Beyond this colouring takes seconds and nobody reads it.
_COLOURED = 200_000


def cuda(text: str) -> Markup:
    """CUDA C++ in colours; control and bidirectional characters are shown, not obeyed."""
    shown = visible(text)
    if len(shown) > _COLOURED:
        return escape(shown)
    # The formatter escapes; its output is the only HTML that is trusted here.
    return Markup(_highlight(shown, _LEXER, _FORMATTER))


def diff(text: str) -> Markup:
    """A unified diff, one ``<span>`` a line by what it does, the code in it in colours."""
    lines = visible(text).splitlines()
    coloured = len(text) <= _COLOURED
    return Markup("").join(_line(line, coloured) for line in lines)


def _line(line: str, coloured: bool) -> Markup:
    if line.startswith(("diff ", "index ", "--- ", "+++ ", "similarity ", "rename ", "new file", "deleted file")):
        return Markup('<span class="d-file">{}\n</span>').format(line)
    if line.startswith("@@"):
        return Markup('<span class="d-hunk">{}\n</span>').format(line)
    kind = {"+": "d-add", "-": "d-del"}.get(line[:1], "d-same")
    # The formatter ends what it wrote with a newline of its own.
    code = Markup(_highlight(line[1:], _LEXER, _FORMATTER).rstrip("\n")) if coloured else escape(line[1:])
    return Markup('<span class="{}">{}{}\n</span>').format(kind, line[:1], code)


def colours() -> str:
    """The style sheet of the code: light, and dark where the reader's system is."""
    light = _Formatter(style="friendly", classprefix="k-").get_style_defs("pre")
    dark = _Formatter(style="github-dark", classprefix="k-").get_style_defs("pre")
    rules = {"light": light, "dark": dark}
    # Only the colours of tokens: background and line numbers are the page's own.
    kept = {name: "\n".join(line for line in text.splitlines() if ".k-" in line) for name, text in rules.items()}
    return f"{kept['light']}\n@media (prefers-color-scheme: dark) {{\n{kept['dark']}\n}}"
