"""Figures and words."""

from __future__ import annotations

import pytest

from astra_integrate.report import text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain ünï → ✓ 漢", "plain ünï → ✓ 漢"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31m", "\\u{1b}[31m"),
        ("if (x\u202e) {\u2066", "if (x\\u{202e}) {\\u{2066}"),
        ("\udc80", "\\u{dc80}"),
        ("zero\u200bwidth", "zero\\u{200b}width"),
        ("\r", "\\u{d}"),
    ],
)
def test_what_hides_is_made_visible(given: str, shown: str) -> None:
    assert text.visible(given) == shown


def test_lists_are_cut_between_items() -> None:
    assert text.whole_items("aaaa, bbbb, cccc", 16) == "aaaa, bbbb, cccc"
    assert text.whole_items("aaaa, bbbb, cccc", 15) == "aaaa, bbbb, …"
    assert text.whole_items("aaaa, bbbb, cccc", 12) == "aaaa, …"
    assert text.whole_items("aaaa, bbbb, cccc", 3) == "aa…"
    assert text.whole_items("x" * 20, 5) == "xxxx…"
    assert text.whole_items("", 5) == ""


@pytest.mark.parametrize(
    ("value", "shown"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.3, "12 s"), (75, "1 min 15 s"), (3600, "60 min 00 s")]
)
def test_durations(value: float, shown: str) -> None:
    assert text.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (8 << 30, "8.0 GiB"), (5 << 40, "5120 GiB")]
)
def test_sizes(value: int, shown: str) -> None:
    assert text.size(value) == shown


@pytest.mark.parametrize(
    ("value", "limit", "shown"),
    [
        (0.0, 0.0, "0 % of the limit"),
        (1e-9, 0.0, "over a limit of 0"),
        (0.0, 1.0, "0 % of the limit"),
        (1e-6, 1.0, "under 1 % of the limit"),
        (0.5, 1.0, "50 % of the limit"),
        (2.0, 1.0, "200 % of the limit"),
    ],
)
def test_shares_of_a_limit(value: float, limit: float, shown: str) -> None:
    assert text.share_figure(value, limit) == shown
