"""A lowering as edits of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_integrate.errors import BadInput, CheckFailed
from astra_integrate.records import Addition, Lowering, Replacement, Slice, digest_of
from astra_integrate.reinject.apply import apply
from astra_integrate.reinject.edits import edits_for

UNIT = """\
//! k device kernel
// What k is for.
__global__ void k(float* p) { p[0] = 1; }  // trailing

//! op host
void op(float* p,
        int n)
{
  k<<<1, 1>>>(p);
  other();
}"""


@pytest.fixture
def unit(cut) -> Slice:  # type: ignore[no-untyped-def]
    slice = cut({"a.cu": UNIT}, "op", kernel="k")
    # The comments around a declaration are not part of it.
    text = "__global__ void k(float* p) { p[0] = 1; }"
    kernel = slice.declarations[0]
    start = kernel.extent.start + kernel.text.index(text)
    extent = kernel.extent.model_copy(
        update={"start": start, "end": start + len(text), "bytes_digest": digest_of(text)}
    )
    kernel = kernel.model_copy(update={"text": text, "extent": extent})
    return slice.model_copy(update={"declarations": (kernel, *slice.declarations[1:])})


def _result(slice: Slice, lowering: Lowering) -> bytes:
    root = Path(slice.source.root)
    apply(root, edits_for(slice, lowering))
    return (root / "a.cu").read_bytes()


def _lowering(slice: Slice, host: str = "", added: tuple[Addition, ...] = ()) -> Lowering:
    replaced = (Replacement(declaration=slice.declarations[-1].id, text=host),) if host else ()
    return Lowering(candidate="c", marker="_m", replaced=replaced, added=added)


def test_only_the_lines_that_differ_are_edited(unit: Slice) -> None:
    host = unit.declarations[-1]
    new = host.text.replace("k<<<1, 1>>>(p);", "k_m<<<1, 32>>>(p);\n  check();")
    (edit,) = edits_for(unit, _lowering(unit, new))
    assert edit.text == "  k_m<<<1, 32>>>(p);\n  check();\n"
    assert edit.context[0] == host.extent
    before = (Path(unit.source.root) / "a.cu").read_bytes()
    assert _result(unit, _lowering(unit, new)) == before.replace(host.text.encode(), new.encode())


def test_a_copy_stands_a_blank_line_after_its_original_and_its_comment(unit: Slice) -> None:
    copy = Addition(anchor=unit.declarations[0].id, where="after", name="k_m", text="__global__ void k_m() {}\n")
    result = _result(unit, _lowering(unit, added=(copy,))).decode()
    assert "{ p[0] = 1; }  // trailing\n\n__global__ void k_m() {}\n\nvoid op(" in result


def test_a_declaration_that_follows_at_once_is_kept_apart(cut) -> None:  # type: ignore[no-untyped-def]
    text = "//! k device kernel\n__global__ void k() {}\n//! op host\nvoid op() { k<<<1, 1>>>(); }\n#endif\n"
    slice = cut({"a.cu": text}, "op", kernel="k")
    host = slice.declarations[1]
    end = host.extent.start + host.text.index("\n")
    line = host.text[: end - host.extent.start]
    extent = host.extent.model_copy(update={"end": end, "bytes_digest": digest_of(line)})
    host = host.model_copy(update={"text": line, "extent": extent})
    slice = slice.model_copy(update={"declarations": (slice.declarations[0], host)})
    added = tuple(
        Addition(anchor=d.id, where="after", name=name, text=f"int {name};")
        for d, name in zip(slice.declarations, ("a", "b"), strict=True)
    )
    assert _result(slice, _lowering(slice, added=added)) == (
        b"__global__ void k() {}\n\nint a;\n\nvoid op() { k<<<1, 1>>>(); }\n\nint b;\n#endif\n"
    )


def test_what_stands_before_goes_above_the_comment(unit: Slice) -> None:
    helper = Addition(anchor=unit.declarations[0].id, name="h_m", text="int h_m;")
    assert _result(unit, _lowering(unit, added=(helper,))).startswith(b"int h_m;\n\n// What k is for.\n__global__")


def test_several_additions_at_one_place_keep_their_order(unit: Slice) -> None:
    id = unit.declarations[0].id
    added = tuple(Addition(anchor=id, where="after", name=name, text=f"int {name};") for name in ("b_m", "a_m"))
    edits = edits_for(unit, _lowering(unit, added=added))
    assert [edit.text for edit in edits] == ["\n\nint b_m;\n\nint a_m;"]


def test_at_the_end_of_a_file_without_newline(unit: Slice) -> None:
    copy = Addition(anchor=unit.declarations[-1].id, where="after", name="x", text="int x;")
    assert _result(unit, _lowering(unit, added=(copy,))).endswith(b"  other();\n}\n\nint x;")


def test_above_a_block_comment_but_not_above_one_that_belongs_to_other_code(cut) -> None:  # type: ignore[no-untyped-def]
    text = b"//! k device kernel\n__global__ void k() {}\n\n//! op host\nvoid op() { k<<<1, 1>>>(); }\n"
    slice = cut({"a.cu": text}, "op", kernel="k")
    root = Path(slice.source.root)
    for above, expected in (
        (b"int z; /* z */\n", b"int z; /* z */\nint h;\n\n"),
        (b"/*\n * Kernel.\n */\n", b"int h;\n\n/*\n * Kernel.\n */\n"),
        (b"// gone\n\n", b"// gone\n\nint h;\n\n"),
    ):
        data = above + b"__global__ void k() {}\n\nvoid op() { k<<<1, 1>>>(); }\n"
        (root / "a.cu").write_bytes(data)
        moved = tuple(
            d.model_copy(
                update={
                    "extent": d.extent.model_copy(
                        update={"start": d.extent.start + len(above), "end": d.extent.end + len(above)}
                    )
                }
            )
            for d in slice.declarations
        )
        here = slice.model_copy(update={"declarations": moved})
        added = (Addition(anchor=moved[0].id, name="h", text="int h;"),)
        assert _result(here, _lowering(here, added=added)).startswith(expected + b"__global__") or _result(
            here, _lowering(here, added=added)
        ).startswith(expected)


def test_a_file_with_crlf_and_bytes_that_are_no_utf8_keeps_both(cut) -> None:  # type: ignore[no-untyped-def]
    text = (
        b"//! k device kernel\r\n__global__ void k() {}  // \xe9t\xe9\r\n\r\n"
        b"//! op host\r\nvoid op() {\r\n  k<<<1, 1>>>(); // \xff\r\n}\r\n"
    )
    slice = cut({"a.cu": text}, "op", kernel="k")
    host = slice.declarations[-1]
    new = host.text.replace("\r\n", "\n").replace("k<<<", "k_m<<<")
    copy = Addition(anchor=slice.declarations[0].id, where="after", name="k_m", text="__global__ void k_m() {\n}")
    result = _result(slice, _lowering(slice, new, (copy,)))
    assert result == (
        b"__global__ void k() {}  // \xe9t\xe9\r\n\r\n__global__ void k_m() {\r\n}\r\n\r\n"
        b"void op() {\r\n  k_m<<<1, 1>>>(); // \xff\r\n}\r\n"
    )


def test_a_line_with_another_end_than_its_neighbours_keeps_it(cut) -> None:  # type: ignore[no-untyped-def]
    text = (
        b"//! k device kernel\n__global__ void k() {}\n\n"
        b"//! op host\nvoid op() {\r\n  a();\n  k<<<1, 1>>>();\r\n  b();\n}\n"
    )
    slice = cut({"a.cu": text}, "op", kernel="k")
    new = slice.declarations[-1].text.replace("\r\n", "\n").replace("k<<<", "k_m<<<")
    result = _result(slice, _lowering(slice, new))
    assert result.endswith(b"void op() {\r\n  a();\n  k_m<<<1, 1>>>();\n  b();\n}\n")


def test_a_source_that_changed_since_it_was_sliced_is_refused(unit: Slice) -> None:
    path = Path(unit.source.root) / "a.cu"
    path.write_bytes(path.read_bytes().replace(b"p[0] = 1", b"p[0] = 2"))
    copy = Addition(anchor=unit.declarations[0].id, where="after", name="x", text="int x;")
    with pytest.raises(CheckFailed, match=r"a\.cu has changed"):
        edits_for(unit, _lowering(unit, added=(copy,)))
    path.unlink()
    with pytest.raises(CheckFailed, match="gone"):
        edits_for(unit, _lowering(unit, added=(copy,)))


def test_a_kernel_without_an_op_is_refused(unit: Slice) -> None:
    with pytest.raises(BadInput, match="without an op"):
        edits_for(unit.model_copy(update={"host_function": None}), _lowering(unit))
