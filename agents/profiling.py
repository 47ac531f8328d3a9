"""Profiling role: what the static evidence of the unmodified kernel says, in a few lines."""

from __future__ import annotations

from astra_integrate.agents.asking import Ask, ask
from astra_integrate.agents.messages import Profile, ProfilingInput
from astra_integrate.records import KernelEvidence

_WIDEST = 128


def profile(input: ProfilingInput, asking: Ask) -> Profile:
    """Findings about the baseline. A model may word them; the figures stay those that were measured."""
    own = summarise(input)
    answer = ask(asking, "profiling", input, Profile)
    if answer.output is None or not answer.output.findings:
        return own
    return Profile(findings=answer.output.findings, shown=own.shown)


def summarise(input: ProfilingInput) -> Profile:
    """The findings that the figures give by themselves, for the first of the op's kernels."""
    if not input.baseline.kernels:
        return Profile(findings=("no compiled kernel to look at",))
    kernels = input.baseline.kernels
    simple, wanted = input.kernel.split("::")[-1], _squeezed(input.instantiation or input.kernel)
    like = [kernel for kernel in kernels if simple in kernel.name] or list(kernels)
    shown = next((kernel for kernel in like if _squeezed(kernel.name).startswith(wanted)), like[0])
    return Profile(findings=tuple(_findings(shown)), shown=shown)


def _squeezed(name: str) -> str:
    return name.replace(" ", "").replace("&", "")


def _findings(kernel: KernelEvidence) -> list[str]:
    loads, stores = _widths(kernel.global_loads), _widths(kernel.global_stores)
    found = [f"global loads {loads or 'none'}, stores {stores or 'none'}"]
    widest = max((bits for bits, _ in (*kernel.global_loads, *kernel.global_stores)), default=_WIDEST)
    if widest < _WIDEST:
        found.append(f"no access is wider than {widest} bit: {_WIDEST // widest} times as many instructions as needed")
    if kernel.calls:
        found.append(f"{kernel.calls} calls of out-of-line code, such as the slow path of a division")
    if kernel.special:
        found.append(f"{kernel.special} special-function instructions")
    if kernel.spill_store_bytes or kernel.spill_load_bytes or kernel.stack_bytes:
        spilled = kernel.spill_store_bytes + kernel.spill_load_bytes
        found.append(f"{kernel.stack_bytes} bytes of stack, {spilled} bytes spilled")
    found.append(f"{kernel.registers} registers, {kernel.shared_bytes} bytes of shared memory")
    if kernel.barriers or kernel.shuffles or kernel.atomics:
        found.append(f"{kernel.barriers} barriers, {kernel.shuffles} shuffles, {kernel.atomics} atomics")
    return found


def _widths(counts: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(f"{count} × {bits} bit" for bits, count in counts)
