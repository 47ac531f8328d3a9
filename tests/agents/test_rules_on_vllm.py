"""The rules on kernels as they are deployed: what changes in the old release, and what is named in the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_integrate import frameworks
from astra_integrate.agents.models.rules import RulesModel
from astra_integrate.agents.models.rules.fast_math import STRATEGY as FAST
from astra_integrate.agents.models.rules.vectorise import STRATEGY as WIDE
from astra_integrate.extract.slicing import make_slice
from astra_integrate.frameworks.base import Target
from astra_integrate.records import Slice, Source
from astra_integrate.settings import Settings
from astra_integrate.toolchain.discovery import Toolchain

pytestmark = pytest.mark.network


def target(source: Source, name: str) -> Target:
    return frameworks.get(source.framework).find(Path(source.root), name)[0]


def sliced(source: Source, name: str, settings: Settings, toolchain: Toolchain) -> Slice:
    return make_slice(source, target(source, name), settings, toolchain)


def test_the_scalar_kernel_of_the_old_release_is_widened(
    vllm_0_12: Source, settings_: Settings, toolchain: Toolchain
) -> None:
    slice = sliced(vllm_0_12, "silu_and_mul", settings_, toolchain)
    rules = RulesModel(toolchain)
    wide = rules.propose(slice, WIDE)
    names = {name for r in wide.replaced for name in slice.declaration(r.declaration).names}
    assert names == {"act_and_mul_kernel"}
    assert "out_vec.val[lane] = compute<scalar_t, ACT_FN, act_first>(x, y);" in wide.replaced[0].text
    fast = rules.propose(slice, FAST)
    assert fast.changes == ("silu_kernel: / → __fdividef, expf → __expf",)
    both = rules.propose(slice, f"{WIDE} + {FAST}")
    assert {r.text for r in both.replaced} == {wide.replaced[0].text, fast.replaced[0].text}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("swigluoai_and_mul", "isn't contiguous in idx: it goes by 2 * idx"),
        ("rotary_embedding", "no array is accessed at i itself: it goes by i / embed_dim"),
    ],
)
def test_other_kernels_of_it_are_left_with_a_reason(
    vllm_0_12: Source, settings_: Settings, toolchain: Toolchain, name: str, why: str
) -> None:
    proposal = RulesModel(toolchain).propose(sliced(vllm_0_12, name, settings_, toolchain), WIDE)
    assert proposal.replaced == ()
    assert why in "\n".join(str(finding) for finding in proposal.declined)


def test_the_new_release_is_vectorised_already(vllm_0_33: Source, settings_: Settings, toolchain: Toolchain) -> None:
    proposal = RulesModel(toolchain).propose(sliced(vllm_0_33, "silu_and_mul", settings_, toolchain), WIDE)
    assert proposal.replaced == ()
    assert "already vectorised" in str(proposal.declined[0])
