"""Git-tracked copies and their diffs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput, CheckFailed, MissingTool
from astra_integrate.records import Source
from astra_integrate.reinject.checkout import changed_files, checkout, diff, is_copy, run_git, verify

CRLF = b"#pragma once\r\nint a;\r\nint b; // caf\xe9\r\nint c;"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    root = tmp_path / "root"
    for name, data in {
        "csrc/a.cuh": CRLF,
        "csrc/deep/b.cu": b"int x;\n",
        "csrc/__pycache__/a.pyc": b"\0",
        "cmake/utils.cmake": b"set(X 1)\n",
        "CMakeLists.txt": b"project(x)\n",
        ".gitignore": b"*.cuh\n",
        ".gitattributes": b"* text=auto eol=lf\n",
        "python/big.py": b"pass\n",
        "weights.bin": bytes(2 << 20),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return Source(framework="vllm", version="1", spec="vllm==1", kind="path", root=str(root), content="abc")


def test_own_folders_and_build_files_are_copied_byte_for_byte(source: Source, tmp_path: Path) -> None:
    copy = checkout(source, ("csrc",), tmp_path / "copy")
    files = run_git(copy, "ls-files").decode().split()
    assert files == [
        ".gitattributes", ".gitignore", "CMakeLists.txt", "cmake/utils.cmake", "csrc/a.cuh", "csrc/deep/b.cu",
    ]  # fmt: skip
    assert (copy / "csrc/a.cuh").read_bytes() == CRLF
    assert run_git(copy, "show", "HEAD:csrc/a.cuh") == CRLF
    assert run_git(copy, "status", "--porcelain") == b""
    assert not list(tmp_path.glob(".copy*")), "nothing is left beside it"


def test_the_commit_is_the_same_everywhere(source: Source, tmp_path: Path) -> None:
    ids = {run_git(checkout(source, ("csrc",), tmp_path / name), "rev-parse", "HEAD") for name in ("one", "two")}
    assert len(ids) == 1


def test_a_copy_that_is_there_is_set_back(source: Source, tmp_path: Path) -> None:
    copy = checkout(source, ("csrc",), tmp_path / "copy")
    (copy / "csrc/a.cuh").write_bytes(b"broken")
    (copy / "new.txt").write_bytes(b"x")
    assert checkout(source, ("csrc",), tmp_path / "copy") == copy
    assert (copy / "csrc/a.cuh").read_bytes() == CRLF and not (copy / "new.txt").exists()


def test_another_folder_is_not_overwritten(source: Source, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(BadInput, match="isn't a copy"):
        checkout(source, ("csrc",), tmp_path / "mine")
    copy = checkout(source, ("csrc",), tmp_path / "copy")
    with pytest.raises(BadInput, match="isn't a copy"):
        checkout(source.model_copy(update={"content": "other"}), ("csrc",), copy)
    assert not is_copy(copy, source.model_copy(update={"version": "2", "spec": "vllm==2"}))


def test_the_diff_applies_with_git_to_a_clean_copy(source: Source, tmp_path: Path) -> None:
    copy = checkout(source, ("csrc",), tmp_path / "copy")
    new = CRLF.replace(b"int b;", b"int bb;\r\nint b2;") + b"\r\nint d;"
    (copy / "csrc/a.cuh").write_bytes(new)
    patch = diff(copy)
    verify(copy, patch)
    assert changed_files(copy) == ("csrc/a.cuh",)
    clean = checkout(source, ("csrc",), tmp_path / "clean")
    (tmp_path / "p.diff").write_bytes(patch.encode("utf-8", "surrogateescape"))
    subprocess.run(["git", "apply", str(tmp_path / "p.diff")], cwd=clean, check=True)
    assert (clean / "csrc/a.cuh").read_bytes() == new


def test_a_diff_that_gives_something_else_is_refused(source: Source, tmp_path: Path) -> None:
    copy = checkout(source, ("csrc",), tmp_path / "copy")
    (copy / "csrc/deep/b.cu").write_bytes(b"int y;\n")
    patch = diff(copy)
    (copy / "csrc/deep/b.cu").write_bytes(b"int z;\n")
    with pytest.raises(CheckFailed, match=r"csrc/deep/b\.cu"):
        verify(copy, patch)
    with pytest.raises(CheckFailed, match="git apply failed"):
        verify(copy, patch.replace("-int x;", "-int w;"))
    assert run_git(copy, "worktree", "list").count(b"\n") == 1, "the clean copies are gone"


def test_the_users_git_settings_and_hooks_variables_do_not_matter(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text(
        "[core]\n autocrlf = true\n[diff]\n noprefix = true\n external = false\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    copy = checkout(source, ("csrc",), tmp_path / "copy")
    (copy / "csrc/a.cuh").write_bytes(CRLF + b"\r\n")
    assert "a/csrc/a.cuh" in diff(copy)
    verify(copy, diff(copy))


def test_without_git_it_says_so(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="git is missing"):
        checkout(source, ("csrc",), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
