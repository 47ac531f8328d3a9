"""Small sources of our own, cut by hand: a slice whose declarations are marked in the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.records import (
    Candidate,
    CompileFlags,
    Declaration,
    Extent,
    Kernel,
    LaunchPlan,
    Parameter,
    Replacement,
    Slice,
    Source,
    TemplateParameter,
    digest_of,
)

# A declaration starts with a line "//! name role [namespace] [kernel]" and ends before the next "//!" line.
_MARK = re.compile(rb"^//! (\S+) (\S+)((?: \S+)*)\r?\n", re.MULTILINE)

Cut = Callable[..., Slice]


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    """``cut(files, host, kernel=…)`` → a slice; the marks are taken out of the files that are written."""

    def build(
        files: dict[str, str | bytes],
        host: str | None,
        *,
        kernel: str,
        parameters: tuple[tuple[str, str], ...] = (),
        templates: tuple[tuple[str, str], ...] = (),
        instantiations: tuple[str, ...] = (),
        op: str | None = None,
        framework: str = "vllm",
    ) -> Slice:
        root = tmp_path / "source"
        declarations: list[Declaration] = []
        for file, text in files.items():
            marked = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
            data = _MARK.sub(b"", marked)
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(data)
            declarations += _declarations(file, marked, len(declarations))
        own = next(d for d in declarations if d.is_kernel and kernel.rpartition("::")[2] in d.names)
        return Slice(
            source=Source(
                framework=framework, version="1", spec=f"{framework}==1", kind="path", root=str(root), content="c0ffee"
            ),
            unit=next(reversed(files)),
            arch="sm_90a",
            kernel=Kernel(
                name=kernel,
                extent=own.extent,
                parameters=tuple(Parameter(name=n, type=t, direction="in") for n, t in parameters),
                template_parameters=tuple(
                    TemplateParameter(name=n, kind="type" if t == "type" else "value", type=t) for n, t in templates
                ),
                signature="",
                body_hash="",
            ),
            op=op or host,
            host_function=host,
            declarations=tuple(declarations),
            instantiations=instantiations,
            flags=CompileFlags(standard="c++17"),
        )

    return build


def _declarations(file: str, marked: bytes, order: int) -> list[Declaration]:
    found: list[Declaration] = []
    marks = list(_MARK.finditer(marked))
    for place, mark in enumerate(marks):
        end = marks[place + 1].start() if place + 1 < len(marks) else len(marked)
        body = marked[mark.end() : end]
        # Up to the closing brace or the last line of a macro: what follows is not part of the declaration.
        text = re.split(rb"\r?\n(?:\r?\n|\} *// namespace|namespace )", body)[0].rstrip()
        start = mark.end() - sum(m.end() - m.start() for m in marks[: place + 1])
        name, role, *rest = (mark[1] + b" " + mark[2] + mark[3]).decode().split()
        found.append(
            Declaration(
                id=f"{file}:{name}@{start}",
                names=(name,),
                kind="",
                role=role,  # type: ignore[arg-type]
                namespaces=tuple(word for word in rest if word != "kernel"),
                order=order + place,
                extent=Extent(file=file, start=start, end=start + len(text), bytes_digest=digest_of(text)),
                text=text.decode("utf-8", "surrogateescape"),
                is_kernel="kernel" in rest,
            )
        )
    return found


@pytest.fixture
def candidate() -> Callable[..., Candidate]:
    """``candidate(slice, {name: new text}, plan=…, added=…)``."""

    def build(slice: Slice, texts: dict[str, str], **rest: object) -> Candidate:
        ids = {d.names[0]: d.id for d in slice.declarations}
        return Candidate(
            id="c",
            slice_digest="s",
            replaced=tuple(Replacement(declaration=ids[name], text=text) for name, text in texts.items()),
            plan=rest.pop("plan", LaunchPlan()),  # type: ignore[arg-type]
            author="test",
            strategy=str(rest.pop("strategy", "")),
            **rest,  # type: ignore[arg-type]
        )

    return build
