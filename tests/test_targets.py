from __future__ import annotations

from pathlib import Path

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.frameworks.base import Target
from astra_integrate.targets import choose, near


class Known:
    """A framework that knows just these targets."""

    name = "small"

    def __init__(self, *targets: Target) -> None:
        self.targets = targets

    def find(self, root: Path, name: str) -> tuple[Target, ...]:
        return tuple(t for t in self.targets if name in (t.op, t.kernel))

    def known_names(self, root: Path) -> tuple[str, ...]:
        return tuple(name for t in self.targets for name in (t.op, t.kernel) if name)


OP = Target(kernel=None, op="scale_rows", host_function="scale_rows", units=("a.cu",))
KERNEL = Target(kernel="ns::scale_rows", op=None, host_function=None, units=("a.cu",))


def test_an_op_wins_over_a_kernel_of_the_same_name():
    kernel = Target(kernel="scale_rows", op=None, host_function=None, units=("a.cu",))
    assert choose(Known(kernel, OP), Path(), "scale_rows") == OP


def test_an_unknown_name_is_refused_with_near_ones():
    with pytest.raises(BadInput, match="Did you mean scale_rows"):
        choose(Known(OP), Path(), "scale_row")


def test_a_name_in_two_places_is_refused_with_both():
    other = Target(kernel=None, op="scale_rows", host_function="scale_rows", units=("b.cu",))
    with pytest.raises(BadInput, match=r"a\.cu.*b\.cu"):
        choose(Known(OP, other), Path(), "scale_rows")


def test_near_names_come_before_names_that_only_contain_it():
    assert near("scale", ["rescale_all_the_rows", "scales", "other"])[0] == "scales"
    assert "rescale_all_the_rows" in near("scale", ["rescale_all_the_rows", "scales", "other"])
