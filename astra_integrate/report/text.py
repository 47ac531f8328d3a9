"""Words and figures as a person reads them; text of models is made harmless to look at first."""

from __future__ import annotations

import unicodedata

from astra_integrate.records import Correctness, RunResult, Timing

NOT_RUN = "not run"


def visible(text: str) -> str:
    """``text`` with everything that hides or reorders characters made visible.

    Control sequences would steer a terminal, and bidirectional marks would show code in another
    order than it compiles in; models (and the files they read) can write both.
    """
    return "".join(char if _harmless(char) else f"\\u{{{ord(char):x}}}" for char in text)


def _harmless(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def one_line(text: str, width: int = 0) -> str:
    """``text`` on one line, cut to ``width`` characters with an ellipsis (0: not cut)."""
    line = " ".join(visible(text).split())
    return line if not width or len(line) <= width else line[: width - 1].rstrip() + "…"


def whole_items(text: str, width: int) -> str:
    """A list of items (``a, b, c``) on one line, cut to ``width`` between two items."""
    line = one_line(text)
    while len(line) > width and ", " in line:
        line = line.removesuffix(", …").rpartition(", ")[0] + ", …"
        if line.count(", ") == 1:
            break
    return one_line(line, width)


def error_figure(value: float) -> str:
    """A relative error: 0, or two significant digits."""
    return "0" if value == 0 else f"{value:.2g}"


def share_figure(value: float, limit: float) -> str:
    """An error as a share of its limit."""
    if limit <= 0:
        return "0 % of the limit" if value == 0 else "over a limit of 0"
    share = 100 * value / limit
    return f"{share:.0f} % of the limit" if share >= 1 or share == 0 else "under 1 % of the limit"


def seconds(value: float) -> str:
    """A duration: ``0.4 s``, ``12 s``, ``3 min 05 s``."""
    if value < 10:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 60 else f"{int(value // 60)} min {int(value % 60):02d} s"


def size(value: float) -> str:
    """Bytes in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def timing_line(timing: Timing | None) -> str:
    """The speed verdict with its reason or its ratio, in the record's words."""
    if timing is None:
        return "not timed"
    line = f"{timing.verdict}: {timing.reason}" if timing.reason else timing.verdict
    if timing.ratio is not None and timing.verdict not in ("not timed", "void"):
        line += f" ({timing.ratio:.3f}×"
        line += f", {timing.interval[0]:.3f} to {timing.interval[1]:.3f})" if timing.interval else ")"
    return line


def verdict_line(correctness: Correctness | None, timing: Timing | None) -> str:
    """Both verdicts as the records say them, for example ``correct under emulation; not timed: no GPU``."""
    return f"{correctness.verdict if correctness else NOT_RUN}; {timing_line(timing)}"


def chosen_line(result: RunResult) -> str:
    """How the best candidate was chosen, as the record says it: ``chosen by static evidence, not timed``."""
    chosen = result.chosen_by.strip()
    return chosen if not chosen or chosen.startswith("chosen") else f"chosen by {chosen}"
