"""A launch plan's steps written into the launches that the framework has, as C++."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from astra_integrate.errors import BadInput
from astra_integrate.records import DeployedStep, LaunchPlan, LaunchStep, Variant
from astra_integrate.reinject.expressions import repeated, to_cpp
from astra_integrate.reinject.format import indented, is_macro
from astra_integrate.reinject.geometry import scope_at, with_x
from astra_integrate.reinject.launch_site import Piece, Site, sites
from astra_integrate.reinject.rename import code_tokens
from astra_integrate.reinject.signature import Signature, plain

Renamer = Callable[[str], str]
_BLOCK_NAMES, _GRID_NAMES, _CONSTANT_NAMES = ("threads", "block_size"), ("blocks", "grid_size"), ("pack", "vec_size")
# A number no longer than this may stand in the chevrons; a longer one gets a name.
_SHORT = 24


@dataclass
class Launcher:
    """Writes a plan into texts and remembers which of its steps have found a launch.

    A step that names one of ``kernels`` (plain name → signature, those of the slice) is about that
    kernel's own launches; one that names an added kernel takes the place of ``main``. ``names`` maps
    old to new names, ``taken`` holds identifiers that a new variable must not have, ``variables`` the
    new ones so far by text and by the place of the innermost ``{``.
    """

    plan: LaunchPlan
    main: str
    kernels: Mapping[str, Signature]
    names: Mapping[str, str]
    renamed: Renamer
    taken: Collection[str] = ()
    used: set[str] = field(default_factory=set)
    variables: dict[tuple[str, int], set[str]] = field(default_factory=dict)

    @property
    def guarded(self) -> bool:
        """Whether the plan chooses between variants at run time."""
        return bool(self.plan.variants and self.plan.variants[0].when)

    @property
    def missing(self) -> tuple[str, ...]:
        """Kernels of steps that say more than a name and have not been written into any launch."""
        steps = [s for v in self.plan.variants for s in v.steps if isinstance(s, LaunchStep) and self._says_more(s)]
        return tuple(dict.fromkeys(plain(s.kernel) for s in steps if plain(s.kernel) not in self.used))

    def rewrite(self, text: str, kernel_at: Callable[[Site], str]) -> str:
        """``text`` with the plan's launches in place of the deployed ones, everything else renamed.

        ``kernel_at`` tells the plain name of the kernel that a site launches. A deployed launch that a
        guard keeps is not renamed: it still starts the framework's own kernel.
        Raises :class:`BadInput` where the plan can't be expressed at a site.
        """
        pieces: list[str] = []
        done = 0
        for site in sites(text) if self.guarded or self._any_says_more() else ():
            kernel = kernel_at(site)
            own = [(variant, self._steps(variant, kernel)) for variant in self.plan.variants]
            if not any(self.guarded or self._says_more(step) for _, steps in own for step in steps):
                continue
            here = _Here(text, site, self.kernels.get(kernel), self)
            new = here.choice(own) if self.guarded or len(own[0][1]) > 1 else here.single(own[0][1][0])
            pieces += [self.renamed(text[done : site.start]), new]
            done = site.statement_end if new.endswith("}") else site.end
        return "".join([*pieces, self.renamed(text[done:])])

    def _any_says_more(self) -> bool:
        return any(isinstance(s, LaunchStep) and self._says_more(s) for v in self.plan.variants for s in v.steps)

    def _says_more(self, step: LaunchStep) -> bool:
        return bool(self.guarded or step.grid or step.block or plain(step.kernel) not in self.kernels)

    def _steps(self, variant: Variant, kernel: str) -> list[LaunchStep]:
        """The variant's launches in place of one launch of ``kernel``."""
        launches = [step for step in variant.steps if isinstance(step, LaunchStep)]
        instead = {step.kernel: plain(step.kernel) for step in launches}
        return [
            s for s in launches if kernel == (instead[s.kernel] if instead[s.kernel] in self.kernels else self.main)
        ]


class _Here:
    """One site, and the C++ that goes there."""

    def __init__(self, text: str, site: Site, kernel: Signature | None, launcher: Launcher) -> None:
        if kernel is None:
            raise BadInput(f"The kernel that {site.name.text} launches is not in the slice")
        self._text, self._site, self._kernel, self._launcher = text, site, kernel, launcher
        self._scope = scope_at(text, site, kernel)
        start = text.rfind("\n", 0, site.start) + 1
        self._indent = text[start : site.start] if text[start : site.start].isspace() else ""
        self._newline = " \\\n" if is_macro(text) else "\n"

    def single(self, step: LaunchStep) -> str:
        """The launch in place of the deployed one, its numbers before it where a statement may stand."""
        statements, launch = self._launch(step, self._block())
        return (self._newline + self._indent).join([*statements, launch])

    def choice(self, variants: list[tuple[Variant, list[LaunchStep]]]) -> str:
        """``if (guard) { … } else { … }``; the deployed launch where no guard holds."""
        if variants[-1][0].when:
            variants = [*variants, (Variant(steps=(DeployedStep(),)), [])]
        lines: list[str] = []
        for variant, steps in variants:
            guard = variant.when and self._launcher.renamed(to_cpp(variant.when, self._scope))
            opening = f"if ({guard}) {{" if guard else "{"
            lines.append(f"}} else {opening}" if lines else opening)
            variables: set[str] = set()
            for step in steps:
                statements, launch = self._launch(step, variables)
                lines += [f"  {statement}" for statement in statements]
                lines.append(f"  {indented(launch, '  ')};")
            if not steps:
                lines.append(f"  {indented(self._text[self._site.start : self._site.end], '  ')};")
            if not guard:
                break
        block = (self._newline + self._indent).join([*lines, "}"])
        # Where the site leaves the semicolon to whoever uses it, the block must stay one statement.
        return block if self._site.semicolon else f"do {{ {block} }} while (0)"

    def _launch(self, step: LaunchStep, variables: set[str] | None) -> tuple[list[str], str]:
        """Statements to stand before the launch, and the launch.

        ``variables`` are the names of new variables in the same block; None where no statement may stand.
        """
        launcher = self._launcher
        constants: dict[str, str] = {}
        statements: list[str] = []
        if variables is not None:
            for expression in dict.fromkeys([*repeated(step.grid or "0"), *repeated(step.block or "0")]):
                constants[expression] = self._fresh(_CONSTANT_NAMES, variables)
                value = launcher.renamed(to_cpp(expression, self._scope))
                statements.append(f"constexpr int64_t {constants[expression]} = {value};")
        new = self._callee(step)
        places = ((self._site.grid, step.grid, _GRID_NAMES), (self._site.block, step.block, _BLOCK_NAMES))
        for piece, expression, names in places:
            if not expression:
                continue
            value = launcher.renamed(to_cpp(expression, self._scope, constants))
            if variables is not None and len(value) > _SHORT:
                name = self._fresh(names, variables)
                statements.append(f"const int64_t {name} = {value};")
                value = name
            new.append((piece, with_x(self._text, piece, value)))
        pieces: list[str] = []
        done = self._site.start
        for piece, replacement in sorted(new, key=lambda n: n[0].start):
            pieces += [launcher.renamed(self._text[done : piece.start]), replacement]
            done = piece.end
        return statements, "".join([*pieces, launcher.renamed(self._text[done : self._site.end])])

    def _callee(self, step: LaunchStep) -> list[tuple[Piece, str]]:
        """The kernel's new name in place of the deployed one."""
        wanted, named = plain(step.kernel), self._site.name
        if wanted not in self._launcher.names:
            raise BadInput(f"The plan launches {step.kernel}, which the candidate neither changes nor adds")
        self._launcher.used.add(wanted)
        if named.text == self._kernel.name:
            return [(named, self._launcher.names[wanted])]
        if wanted != self._kernel.name:
            raise BadInput(f"{self._kernel.name} is launched through {named.text}: no other kernel can be put there")
        return []

    def _fresh(self, names: Collection[str], variables: set[str]) -> str:
        unused = (n for n in (*names, *(f"{name}_{k}" for k in range(2, 99) for name in names)) if n not in variables)
        name = next(n for n in unused if n not in self._launcher.taken)
        variables.add(name)
        return name

    def _block(self) -> set[str] | None:
        """New variables of the block that the launch is a statement of; None where it isn't one.

        Statements may stand before it where it follows a ``{``, ``}`` or ``;``, but not between the
        labels of a ``switch``: a later label would jump over the variable.
        """
        before = code_tokens(self._text[: self._site.start])
        if not self._site.semicolon or not before or before[-1].text not in ("{", "}", ";"):
            return None
        if any(token.text == "switch" for token in before):
            return None
        opened: list[int] = []
        for token in before:
            if token.text == "{":
                opened.append(token.start)
            elif token.text == "}" and opened:
                opened.pop()
        return self._launcher.variables.setdefault((self._text, opened[-1] if opened else -1), set())
