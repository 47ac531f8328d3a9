"""Mangled names into template-ids that compile as source text."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache

from astra_integrate.errors import MissingTool
from astra_integrate.extract.lexing import closing

_BUILTIN = (
    r"(?:unsigned |signed )?(?:char|short|int|long|long long|__int128)|unsigned|signed|bool|float|double"
    r"|char8_t|char16_t|char32_t|wchar_t"
)
_CAST = re.compile(rf"\((?:{_BUILTIN})\)(?=-?\d)")


def demangle(symbols: Sequence[str]) -> tuple[str, ...]:
    """The C++ names of Itanium-mangled ``symbols``; one that isn't mangled comes back as it is.

    Raises :class:`MissingTool` where neither libstdc++ nor ``c++filt`` is there.
    """
    return _demangler()(tuple(symbols))


@cache
def _demangler() -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    # libstdc++'s own demangler is on every machine that has the compiler; binutils' program need not be.
    name = ctypes.util.find_library("stdc++")
    for candidate in (name, "libstdc++.so.6"):
        if candidate is None:
            continue
        try:
            return _by_library(ctypes.CDLL(candidate))
        except (OSError, AttributeError):
            continue
    program = shutil.which("c++filt")
    if program is None:
        raise MissingTool("Neither libstdc++ nor c++filt is there to read symbols", "Install a C++ compiler (g++)")
    return lambda symbols: _by_program(program, symbols)


def _by_library(library: ctypes.CDLL) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    function = library.__cxa_demangle
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]

    def one(symbol: str) -> str:
        status = ctypes.c_int()
        address = function(symbol.encode(), None, None, ctypes.byref(status))
        if not address:
            return symbol
        try:
            return ctypes.string_at(address).decode()
        finally:
            free(address)

    return lambda symbols: tuple(one(symbol) for symbol in symbols)


def _by_program(program: str, symbols: tuple[str, ...]) -> tuple[str, ...]:
    if not symbols:
        return ()
    done = subprocess.run([program], input="\n".join(symbols), capture_output=True, text=True, check=True, timeout=60)
    return tuple(done.stdout.split("\n")[: len(symbols)])


def template_id(demangled: str, name: str) -> str | None:
    """The part of a demangled function that names it in source: ``ns::name<args>`` or ``ns::name``.

    None where ``name`` isn't the function's name, or where an argument has no name in source (a lambda).
    Function arguments lose their signature, built-in values their cast; anonymous namespaces are
    dropped, since look-up sees through them.
    """
    text = _source_spelling(demangled)
    # The return type stands before and may hold anything, comparisons too: only what a parameter list
    # follows is the function.
    for match in re.finditer(rf"(?<![\w:])(?:\w+::)*{re.escape(name)}(?=[<(]|$)", text):
        end: int | None = match.end()
        if text[match.end() : match.end() + 1] == "<":
            end = closing(text, match.end())
        if end is None or text[end : end + 1] not in ("(", ""):
            continue
        found = text[match.start() : end]
        return None if "{lambda" in found or "'lambda" in found or "{unnamed" in found else found
    return None


def _source_spelling(demangled: str) -> str:
    text = demangled.replace("(anonymous namespace)::", "").replace("{anonymous}::", "")
    text = _CAST.sub("", text)
    while (start := _function_argument(text)) is not None:
        end = closing(text, start + 1)
        if end is None:
            break
        text = text[:start] + "&" + _function_name(text[start + 2 : end - 1]) + text[end:]
    return text


def _function_argument(text: str) -> int | None:
    """Where ``&(ret f<T>(args))`` starts: an address-of whose parenthesis holds a whole signature."""
    match = re.search(r"&\((?=[^()]*[\w>] [\w:]+)", text)
    return match.start() if match else None


def _function_name(signature: str) -> str:
    """``f<T>`` out of ``ret f<T>(args)``: the last top-level word before the parameter list."""
    depth = 0
    start = 0
    for index, character in enumerate(signature):
        if character == "(" and depth == 0:
            return signature[start:index]
        if character in "<([":
            depth += 1
        elif character in ">)]":
            depth -= 1
        elif character == " " and depth == 0:
            start = index + 1
    return signature[start:]
