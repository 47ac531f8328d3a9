"""The kernels that one parsed unit defines."""

from __future__ import annotations

from collections.abc import Sequence

from astra_integrate.extract.declarations import Found, is_global
from astra_integrate.extract.kernel_record import kernel_record
from astra_integrate.records import Kernel


def kernels(found: Sequence[Found], unit: str) -> tuple[Kernel, ...]:
    """Kernels defined in the framework's own files, in the unit's order.

    Declarations without a body are left out; an explicit specialisation is a kernel of its own, and so
    is each of several that one macro call makes (they share its extent).
    """
    seen: dict[tuple[str, str, int, str], Kernel] = {}
    for entry in found:
        if not entry.declaration.is_kernel:
            continue
        for cursor in entry.cursors:
            if not is_global(cursor) or not cursor.is_definition():
                continue
            record = kernel_record(Found(entry.declaration, (cursor,)), unit)
            seen.setdefault((record.name, record.extent.file, record.extent.start, cursor.displayname), record)
    return tuple(seen.values())


def merged(several: Sequence[Sequence[Kernel]]) -> tuple[Kernel, ...]:
    """Kernels of several units as one list by file and place; one seen in several units names them all."""
    units: dict[tuple[str, str, int, str], list[str]] = {}
    first: dict[tuple[str, str, int, str], Kernel] = {}
    for kernel in (k for one in several for k in one):
        parameters = ", ".join(parameter.type for parameter in kernel.parameters)
        key = (kernel.extent.file, kernel.name, kernel.extent.start, parameters)
        first.setdefault(key, kernel)
        units.setdefault(key, []).extend(kernel.units)
    return tuple(
        first[key].model_copy(update={"units": tuple(sorted(set(units[key])))})
        for key in sorted(first, key=lambda k: (k[0], k[2], k[1]))
    )
