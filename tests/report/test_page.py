"""The page: whole, self-contained, and harmless whatever the records hold."""

from __future__ import annotations

import html.parser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from astra_integrate.records import Event, RunResult, Slice, Trial
from astra_integrate.report import PAGE, gather, write_page
from astra_integrate.report.page import render
from astra_integrate.store import Store

SECTIONS = ["summary", "not-measured", "candidates", "evidence", "errors", "diff", "kernel", "environment"]
VOID = {"meta", "rect", "br"}


class Page(html.parser.HTMLParser):
    """Tags, attributes and the text of each section; fails on tags that don't match."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.sections: dict[str, str] = {}
        self._open: list[str] = []
        self._section: str | None = None
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "section":
            self._section = str(dict(attrs)["id"])
            self.sections[self._section] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag, self.getpos()
        if tag in ("td", "th", "dt", "dd", "tr") and self._section is not None:
            self.sections[self._section] += " "
        if tag == "section":
            self._section = None

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self._section is not None:
            self.sections[self._section] += data

    def words(self) -> dict[str, str]:
        return {name: " ".join(content.split()) for name, content in self.sections.items()}


def test_every_section_says_what_the_records_say(events: tuple[Event, ...]) -> None:
    page = Page(render(gather(events)))
    assert list(page.sections) == SECTIONS
    text = page.words()
    assert "correct under emulation; not timed: no GPU" in text["summary"]
    assert "chosen by static evidence, not timed; 2 candidates tried" in text["summary"]
    assert "its SASS holds the candidate's code" in text["summary"]
    assert "speed: this machine has no GPU" in text["not-measured"] and "end to end: no GPU" in text["not-measured"]
    assert "vectorised access" in text["candidates"] and "3 of 258 elements beyond the limit" in text["candidates"]
    assert "launch geometry: the block is fixed by a shared array" in text["candidates"]
    assert "slice 4.2 s, optimise 1 min 10 s" in text["environment"]
    assert "2 × 16 bit 2 × 128 bit" in text["evidence"]
    assert "2 rows of 129, float16 forward correct under emulation expression out 0.0006 0.0004 0.001" in text["errors"]
    assert "+ out[i] = in[i] * 2;" in text["diff"] and "- out[i] = in[i]; // a < b && c" in text["diff"]
    assert "one element at a time" in text["kernel"] and "sixteen bytes at a time" in text["kernel"]
    assert "constexpr int VEC = 8;" in text["kernel"]
    assert "Some CPU, 2 cores, 8.0 GiB" in text["environment"] and "-O3" in text["environment"]
    assert "faster" not in "".join(text.values())


def test_the_page_needs_nothing_outside_itself(events: tuple[Event, ...]) -> None:
    page = render(gather(events))
    found = Page(page)
    assert not {tag for tag, _ in found.tags} & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for _, attributes in found.tags:
        assert not set(attributes) & {"src", "href", "srcset", "action", "style", "xlink:href"}
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\(|@import|https?://", page)


ATTACKS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></style></title><script>alert(1)</script>",
    "{{ 7 * 7 }}{% for x in y %}",
    "<!-- <svg/onload=alert(1)> -->",
    '/* </span><b onclick=alert(1)> */ char* s = "</code><script>";',
    "\u202e\x1b[31m\x00\ud800",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_whatever_a_model_writes_stays_text(
    events: tuple[Event, ...], result: RunResult, slice_: Slice, attack: str
) -> None:
    """Every string of every record is replaced; the page's tags must stay those of harmless strings."""
    content = gather(events)
    plain, bad = spoil(content, "harmless"), spoil(content, attack)
    calm = [(tag, sorted(attributes)) for tag, attributes in Page(render(plain)).tags if tag != "span"]
    page = render(bad)
    found = Page(page)
    assert [(tag, sorted(attributes)) for tag, attributes in found.tags if tag != "span"] == calm
    assert all(set(attributes) <= {"class"} for tag, attributes in found.tags if tag == "span")
    assert not {"\u202e", "\x1b", "\x00", "\ud800"} & set(page)
    if "7 * 7" in attack:
        assert "{{ 7 * 7 }}" in found.sections["candidates"]


def spoil(content, text: str):  # type: ignore[no-untyped-def]
    """``content`` with ``text`` in place of every string that a model or a source could have written."""
    from dataclasses import replace

    def spoiled(trial: Trial) -> Trial:
        return trial.model_copy(
            update={
                "compile_error": text,
                "escape": text,
                "correctness": trial.correctness.model_copy(update={"detail": text}),
                "timing": trial.timing.model_copy(update={"reason": text}),
            }
        )

    def errors(correctness):  # type: ignore[no-untyped-def]
        results = tuple(
            found.model_copy(
                update={
                    "workload": text,
                    "detail": text,
                    "errors": tuple(error.model_copy(update={"output": text}) for error in found.errors),
                }
            )
            for found in correctness.results
        )
        return correctness.model_copy(update={"results": results, "detail": text})

    strings = {"strategy": text, "reasoning": text, "expected": text, "author": text}
    tried = []
    for item in content.tried:
        candidate = item.candidate.model_copy(
            update={
                **strings,
                "replaced": tuple(r.model_copy(update={"text": text}) for r in item.candidate.replaced),
                "added": tuple(a.model_copy(update={"text": text, "name": text}) for a in item.candidate.added),
            }
        )
        trial = spoiled(item.trial) if item.trial else None
        tried.append(replace(item, candidate=candidate, trial=trial, reason=text))
    declarations = tuple(
        d.model_copy(update={"text": text, "names": (text,), "extent": d.extent.model_copy(update={"file": text})})
        for d in content.slice.declarations
    )
    return replace(
        content,
        tried=tuple(tried),
        slice=content.slice.model_copy(update={"declarations": declarations, "unit": text}),
        patch=content.patch.model_copy(update={"diff": f"+{text}\n-{text}\n@@ {text}\n {text}\n--- {text}\n"}),
        result=content.result.model_copy(
            update={
                "op": text,
                "reason": text,
                "source": text,
                "run": text,
                "not_measured": (text,),
                "declined": (text,),
                "stages": ((text, 1.0),),
                "correctness": errors(content.result.correctness),
            }
        ),
        unread=(text,),
    )


def test_a_run_cut_short_has_a_page_too(events: tuple[Event, ...]) -> None:
    for count in range(len(events)):
        page = Page(render(gather(events[:count])))
        assert "not finished" in page.sections["summary"]


def test_figures_that_are_no_numbers_are_shown(events: tuple[Event, ...], result: RunResult) -> None:
    assert result.correctness is not None
    first = result.correctness.results[0]
    errors = tuple(
        first.errors[0].model_copy(update={"candidate": value, "mismatches": 1})
        for value in (float("nan"), float("inf"))
    )
    wrong = result.correctness.model_copy(update={"results": (first.model_copy(update={"errors": errors}),)})
    page = Page(render(gather(events[:-1], result.model_copy(update={"correctness": wrong}))))
    assert "nan" in page.sections["errors"] and "inf" in page.sections["errors"]
    bars = [attributes for tag, attributes in page.tags if tag == "rect" and attributes["class"] == "over"]
    assert [bar["width"] for bar in bars] == ["100.0", "100.0"]


def test_the_page_is_a_file_of_the_run(tmp_path: Path, events: tuple[Event, ...]) -> None:
    with Store(tmp_path) as store, store.create("vllm==1", "scale", "scale", {}) as run:
        for event in events:
            run.record(event.stage, event.key, event.kind, event.payload)
        path = write_page(run)
        assert path == run.folder / PAGE and PAGE in run.artefacts()
        assert list(Page(path.read_text(encoding="utf-8")).sections) == SECTIONS


@pytest.mark.slow
def test_a_browser_shows_it(tmp_path: Path, events: tuple[Event, ...]) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium: the page was not looked at in a browser")
    (tmp_path / "page.html").write_text(render(gather(events)), encoding="utf-8")
    picture = tmp_path / "page.png"
    subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1200,2000",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--screenshot={picture}",
            (tmp_path / "page.html").as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    # A blank page compresses to almost nothing.
    assert picture.stat().st_size > 50_000
