"""CMake text in, variables out: the part of the language that decides what a build compiles."""

from __future__ import annotations

import pytest

from astra_integrate.frameworks.cmake_eval import Evaluation
from astra_integrate.frameworks.cmake_text import commands


def evaluated(text, **variables):
    evaluation = Evaluation(dict(variables), {})
    evaluation.run(commands(text))
    return evaluation


def test_lists_and_references():
    evaluation = evaluated('set(A "x" y)\nlist(APPEND A "z;w")\nset(B ${A})\nset(NAME A)\nset(C "${${NAME}}")\n')
    assert evaluation.get("A") == ["x", "y", "z", "w"]
    assert evaluation.get("B") == evaluation.get("C") == evaluation.get("A")


def test_remove_duplicates_and_filter():
    evaluation = evaluated(
        'set(A b a b c)\nlist(REMOVE_DUPLICATES A)\nlist(REMOVE_ITEM A c)\nlist(FILTER A EXCLUDE REGEX "^a")'
    )
    assert evaluation.get("A") == ["b"]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('LANG STREQUAL "CUDA"', True),
        ('NOT LANG STREQUAL "CUDA"', False),
        ('LANG STREQUAL "HIP" OR (LANG STREQUAL "CUDA" AND FULL)', True),
        ("${V} VERSION_GREATER_EQUAL 12.8", True),
        ("${V} VERSION_GREATER_EQUAL 12.10 AND FULL", True),
        ("${V} VERSION_LESS 9.0", False),
        ("EMPTY", False),
        ("MISSING", False),
        ("DEFINED V AND NOT DEFINED MISSING", True),
        ('V MATCHES "^13"', True),
        ("a IN_LIST FULL", True),
        ("c IN_LIST FULL", False),
        ("${V} VERSION_GREATER_EQUAL 13.0 AND EMPTY", False),
        ("EXISTS /nowhere", False),
    ],
)
def test_conditions(condition, holds):
    text = f"if({condition})\nset(R yes)\nelse()\nset(R no)\nendif()"
    assert evaluated(text, LANG="CUDA", V="13.0", EMPTY="", FULL="a;b").get("R") == ["yes" if holds else "no"]


def test_nested_ifs_take_the_right_branch():
    text = (
        "if(A)\n if(B)\n set(R ab)\n else()\n set(R a)\n endif()\nelseif(B)\n set(R b)\nelse()\n set(R none)\nendif()"
    )
    assert evaluated(text, A="1").get("R") == ["a"]
    assert evaluated(text, B="1").get("R") == ["b"]
    assert evaluated(text).get("R") == ["none"]


def test_functions_have_their_own_scope_and_may_set_the_callers():
    text = 'function(f OUT)\nset(LOCAL 1)\nset(${OUT} "v;${ARGN}" PARENT_SCOPE)\nendfunction()\nf(R a b)'
    evaluation = evaluated(text)
    assert evaluation.get("R") == ["v", "a", "b"]
    assert "LOCAL" not in evaluation.variables


def test_loops_comments_and_brackets():
    text = (
        "# set(X 1)\n#[[ set(X 2)\n]]\nforeach(I a b) # each\nlist(APPEND R ${I}${I})\nendforeach()\nset(RAW [[${I}]])"
    )
    evaluation = evaluated(text)
    assert evaluation.get("R") == ["aa", "bb"]
    assert evaluation.variables["RAW"] == "${I}"
    assert "X" not in evaluation.variables


def test_return_leaves_the_file():
    assert evaluated("set(A 1)\nif(A)\nreturn()\nendif()\nset(A 2)").get("A") == ["1"]
