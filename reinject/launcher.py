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


@dataclass
class Launcher:
    """Writes a plan into texts and remembers which of its steps have found a launch.

    A step that names one of ``kernels`` (plain name → signature, those of the slice) is about that
    kernel's own launches; one that names an added kernel takes the place of ``main``. ``names`` maps
    old to new names, ``taken`` holds identifiers that a new variable must not have.
    """

    plan: LaunchPlan
    main: str
    kernels: Mapping[str, Signature]
    names: Mapping[str, str]
    renamed: Renamer
    taken: Collection[str] = ()
    used: set[str] = field(default_factory=set)

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
        return [
            s for s in launches if plain(s.kernel) == (kernel if plain(s.kernel) in self.kernels else self.main)
        ] + [s for s in launches if plain(s.kernel) not in self.kernels and kernel == self.main]


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
        statements, launch = self._launch(step, named=self._is_statement())
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
            for step in steps:
                statements, launch = self._launch(step, named=len(steps) == 1)
                lines += [f"  {statement}" for statement in statements]
                lines.append(f"  {indented(launch, '  ')};")
            if not steps:
                lines.append(f"  {indented(self._text[self._site.start : self._site.end], '  ')};")
            if not guard:
                break
        block = (self._newline + self._indent).join([*lines, "}"])
        # Where the site leaves the semicolon to whoever uses it, the block must stay one statement.
        return block if self._site.semicolon else f"do {block} while (0)"

    def _launch(self, step: LaunchStep, *, named: bool) -> tuple[list[str], str]:
        """Statements to stand before the launch (with ``named``, else none), and the launch."""
        site, launcher = self._site, self._launcher
        wanted = plain(step.kernel)
        if wanted not in launcher.names:
            raise BadInput(f"The plan launches {step.kernel}, which the candidate neither changes nor adds")
        launcher.used.add(wanted)
        new: list[tuple[Piece, str]] = []
        if site.name.text == self._kernel.name:
            new.append((site.name, launcher.names[wanted]))
        elif wanted != self._kernel.name:
            raise BadInput(
                f"{self._kernel.name} is launched through {site.name.text}: no other kernel can be put there"
            )
        constants = self._constants(step) if named else {}
        statements = [
            f"constexpr int64_t {name} = {to_cpp(expression, self._scope)};" for expression, name in constants.items()
        ]
        for piece, expression, names in ((site.grid, step.grid, _GRID_NAMES), (site.block, step.block, _BLOCK_NAMES)):
            if not expression:
                continue
            value = launcher.renamed(to_cpp(expression, self._scope, constants))
            if named and len(value) > len("threads"):
                name = self._fresh(names)
                statements.append(f"const int64_t {name} = {value};")
                value = name
            new.append((piece, with_x(self._text, piece, value)))
        pieces: list[str] = []
        done = site.start
        for piece, replacement in sorted(new, key=lambda n: n[0].start):
            pieces += [launcher.renamed(self._text[done : piece.start]), replacement]
            done = piece.end
        return statements, "".join([*pieces, launcher.renamed(self._text[done : site.end])])

    def _constants(self, step: LaunchStep) -> dict[str, str]:
        """Repeated constant subexpressions → variable names; none where a type isn't known to be one here."""
        several = dict.fromkeys([*repeated(step.grid or "0"), *repeated(step.block or "0")])
        return {expression: self._fresh(_CONSTANT_NAMES, place) for place, expression in enumerate(several)}

    def _fresh(self, names: Collection[str], place: int = 0) -> str:
        free = [name for name in (*names, *(f"{name}_{n}" for n in range(2, 99) for name in names))]
        return [name for name in free if name not in self._launcher.taken][place]

    def _is_statement(self) -> bool:
        """Whether other statements may stand right before the launch: it follows a ``{``, ``}`` or ``;``."""
        if not self._site.semicolon:
            return False
        before = code_tokens(self._text[: self._site.start])
        return bool(before) and before[-1].text in ("{", "}", ";")
