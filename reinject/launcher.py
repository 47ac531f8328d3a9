"""A launch plan's steps written into the launch that the framework has, as C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from astra_integrate.errors import BadInput
from astra_integrate.records import DeployedStep, Kernel, LaunchPlan, LaunchStep
from astra_integrate.reinject.expressions import to_cpp
from astra_integrate.reinject.format import indented, is_macro
from astra_integrate.reinject.geometry import scope_at, with_x
from astra_integrate.reinject.launch_site import Piece, Site, sites

Renamer = Callable[[str], str]


@dataclass(frozen=True)
class Launching:
    """What is to be launched where ``kernel`` was.

    ``names`` maps the plain names of kernels that the candidate changes or adds to their new names.
    """

    kernel: Kernel
    plan: LaunchPlan
    names: Mapping[str, str]

    @property
    def plain(self) -> bool:
        """Whether every launch statement stays as it is but for names."""
        own = self.kernel.name.rpartition("::")[2]
        trivial = (DeployedStep(), LaunchStep(kernel=own), LaunchStep(kernel=self.kernel.name))
        return len(self.plan.variants) == 1 and all(step in trivial for step in self.plan.variants[0].steps)

    @property
    def guarded(self) -> bool:
        """Whether a launch becomes a block with several launches in it."""
        first = self.plan.variants[0]
        return not self.plain and (bool(first.when) or len(first.steps) > 1)


def rewrite(text: str, launching: Launching, renamed: Renamer, launched: Callable[[Site], bool]) -> tuple[str, int]:
    """``text`` with its launches of the kernel replaced by the plan's, and how many there were.

    Everything else is renamed by ``renamed``. A deployed launch that a guard keeps is not: it still
    starts the framework's own kernel. ``launched`` tells whether a site launches the kernel.
    Raises :class:`BadInput` where the plan can't be expressed at a site.
    """
    chosen = [] if launching.plain else [site for site in sites(text) if launched(site)]
    pieces: list[str] = []
    done = 0
    for site in chosen:
        new = _block(text, site, launching, renamed) if launching.guarded else _single(text, site, launching, renamed)
        pieces += [renamed(text[done : site.start]), new]
        done = site.statement_end if launching.guarded else site.end
    return "".join([*pieces, renamed(text[done:])]), len(chosen)


def _single(text: str, site: Site, launching: Launching, renamed: Renamer) -> str:
    (step,) = launching.plan.variants[0].steps
    return _launch(text, site, step, launching, renamed)


def _block(text: str, site: Site, launching: Launching, renamed: Renamer) -> str:
    """``if (guard) { … } else { … }`` in the indentation and line ends of the site."""
    scope = scope_at(text, site, launching.kernel)
    lines: list[str] = []
    variants = [(variant.when, variant.steps or (DeployedStep(),)) for variant in launching.plan.variants]
    if variants[-1][0]:
        variants.append(("", (DeployedStep(),)))
    for when, steps in variants:
        opening = f"if ({renamed(to_cpp(when, scope))}) {{" if when else "{"
        lines.append(f"}} else {opening}" if lines else opening)
        for step in steps:
            lines.append(f"  {indented(_launch(text, site, step, launching, renamed), '  ')};")
        if not when:
            break
    lines.append("}")
    start = text.rfind("\n", 0, site.start) + 1
    indent = text[start : site.start] if text[start : site.start].isspace() else ""
    newline = " \\\n" if is_macro(text) else "\n"
    block = newline.join([lines[0], *(indent + line for line in lines[1:])])
    # Where the site leaves the semicolon to whoever uses it, the block must stay one statement.
    return block if site.semicolon else f"do {block} while (0)"


def _launch(text: str, site: Site, step: LaunchStep | DeployedStep, launching: Launching, renamed: Renamer) -> str:
    if isinstance(step, DeployedStep):
        return text[site.start : site.end]
    scope = scope_at(text, site, launching.kernel)
    own, wanted = launching.kernel.name.rpartition("::")[2], step.kernel.rpartition("::")[2]
    if wanted not in launching.names:
        raise BadInput(f"The plan launches {step.kernel}, which the candidate neither changes nor adds")
    new: list[tuple[Piece, str]] = []
    if site.name.text == own:
        new.append((site.name, launching.names[wanted]))
    elif wanted != own:
        raise BadInput(f"The launch of {own} names it through {site.name.text}: another kernel can't be put there")
    if step.grid:
        new.append((site.grid, with_x(text, site.grid, renamed(to_cpp(step.grid, scope)))))
    if step.block:
        new.append((site.block, with_x(text, site.block, renamed(to_cpp(step.block, scope)))))
    pieces: list[str] = []
    done = site.start
    for piece, replacement in sorted(new, key=lambda n: n[0].start):
        pieces += [renamed(text[done : piece.start]), replacement]
        done = piece.end
    return "".join([*pieces, renamed(text[done : site.end])])
