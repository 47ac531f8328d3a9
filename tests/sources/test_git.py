"""Tags, branches and commits of real (local, bare) repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput, FetchFailed, MissingTool
from astra_integrate.records import digest_of
from astra_integrate.settings import load
from astra_integrate.sources.git import git_source

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


class Upstream:
    """A bare repository and the checkout that it is fed from."""

    def __init__(self, folder: Path) -> None:
        self.bare, self.work = folder / "upstream.git", folder / "work"
        self.run("init", "--quiet", "--bare", "--initial-branch=main", self.bare, where=folder)
        self.run("clone", "--quiet", self.bare, self.work, where=folder)
        self.run("checkout", "--quiet", "-B", "main")

    def run(self, *arguments, where: Path | None = None) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"]
        command = ["git", *identity, *map(str, arguments)]
        return subprocess.run(
            command, cwd=where or self.work, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, message: str, **files: str) -> str:
        for name, text in files.items():
            path = self.work / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.run("add", "--all", "--force")
        self.run("commit", "--quiet", "-m", message)
        return self.run("rev-parse", "HEAD")

    def push(self) -> None:
        self.run("push", "--quiet", "--force", "--tags", "origin", "HEAD:refs/heads/main")


@pytest.fixture
def upstream(tmp_path, small, monkeypatch):
    (tmp_path / "gitconfig").touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    made = Upstream(tmp_path)
    small.repository = str(made.bare)
    made.first = made.commit("one", VERSION="1.0.dev", kernels__scale="x")
    (made.work / "kernels/scale").rename(made.work / "kernels/scale.cu")
    made.second = made.commit("two", VERSION="1.0.dev")
    made.run("tag", "v1.0.0")
    made.run("tag", "-a", "v1.1.0", "-m", "annotated")
    (made.work / "kernels/scale.cu").write_text("y\r\nz\n")
    (made.work / "link.cu").symlink_to("kernels/scale.cu")
    made.third = made.commit("three", VERSION="1.2.dev", kernels__plain="a\nb\n")
    made.push()
    (tmp_path / "gitconfig").write_text("[core]\n\tautocrlf = true\n")  # a user's setting that must not count
    return made


def take(small, ref, settings):
    return git_source(small, ref, f"small@{ref}", settings)


def test_a_tag_is_its_release(upstream, small, settings):
    source = take(small, "v1.0.0", settings)
    assert (source.kind, source.version, source.spec) == ("git", "1.0.0", "small@v1.0.0")
    assert Path(source.root, "kernels/scale.cu").read_bytes() == b"x"
    assert not Path(source.root, ".git").exists()
    assert source.content == digest_of(upstream.run("rev-parse", f"{upstream.second}^{{tree}}"))


def test_an_annotated_tag_and_the_full_ref_mean_the_same_commit(upstream, small, settings):
    assert take(small, "v1.1.0", settings).root == take(small, "refs/tags/v1.0.0", settings).root


def test_a_branch_brings_the_stored_bytes_and_links(upstream, small, settings):
    source = take(small, "main", settings)
    assert source.version == f"1.2.dev+g{upstream.third[:8]}"
    assert Path(source.root, "kernels/scale.cu").read_bytes() == b"y\r\nz\n"
    assert Path(source.root, "kernels/plain").read_bytes() == b"a\nb\n"
    assert os.readlink(Path(source.root, "link.cu")) == "kernels/scale.cu"


def test_a_branch_that_moved_is_asked_for_again(upstream, small, settings):
    before = take(small, "main", settings)
    upstream.commit("four", kernels__more="1")
    upstream.push()
    after = take(small, "main", settings)
    assert after.content != before.content and Path(after.root, "kernels/more").is_file()
    assert not Path(before.root, "kernels/more").exists()


@pytest.mark.parametrize("length", [40, 10])
def test_any_commit_by_its_hash(upstream, small, settings, length):
    take(small, "main", settings)
    source = take(small, upstream.second[:length], settings)
    assert Path(source.root, "kernels/scale.cu").read_bytes() == b"x"


def test_only_one_commit_is_fetched_for_a_tag(upstream, small, settings):
    take(small, "v1.0.0", settings)
    mirror = next((settings.cache / "git").glob("small-*.git"))
    # (a path is the one kind of remote for which git may take more: the mirror still holds one commit)
    assert upstream.run("rev-list", "--all", "--count", where=mirror) == "1"


def test_warm_tags_and_commits_need_no_remote_and_are_quick(upstream, small, settings, caplog):
    first = take(small, "v1.0.0", settings)
    branch = take(small, "main", settings)
    shutil.move(upstream.bare, upstream.bare.with_name("away"))
    started = time.monotonic()
    assert take(small, "v1.0.0", settings) == first
    assert take(small, upstream.third, settings).root == branch.root
    assert time.monotonic() - started < 0.5 and not caplog.records
    assert take(small, "main", settings) == branch
    assert "as it was last seen" in caplog.text


def test_a_tree_that_was_cleared_is_made_again(upstream, small, settings):
    source = take(small, "v1.0.0", settings)
    shutil.rmtree(settings.cache)
    assert take(small, "v1.0.0", settings) == source and Path(source.root, "VERSION").is_file()


@pytest.mark.parametrize(("ref", "near"), [("v1.0.9", "v1.0.0"), ("mian", "main"), ("0" * 40, ""), ("abc1234", "")])
def test_unknown_refs(upstream, small, settings, ref, near):
    with pytest.raises(BadInput, match=f"has no tag, branch or commit '{ref}'.*{near}"):
        take(small, ref, settings)
    assert not (settings.cache / "sources").exists() or not list((settings.cache / "sources").iterdir())
    assert take(small, "v1.0.0", settings).version == "1.0.0"


def test_a_commit_that_is_no_source_tree(upstream, small, settings):
    with pytest.raises(BadInput, match="holds no CUDA source"):
        take(small, upstream.first, settings)


def test_a_repository_that_cannot_be_reached(small, settings, tmp_path):
    for url in (str(tmp_path / "nowhere.git"), "http://127.0.0.1:1/x.git"):
        small.repository = url
        with pytest.raises(FetchFailed, match=r"small@main is not in the cache.*ASTRA_SMALL_REPOSITORY"):
            take(small, "main", settings)


def test_offline(upstream, small, settings):
    offline = load(home=settings.home, offline=True)
    with pytest.raises(FetchFailed, match="ASTRA_OFFLINE"):
        take(small, "main", offline)
    assert take(small, "main", settings) == take(small, "main", offline)


def test_the_repository_is_a_setting(upstream, small, settings):
    small.name, small.repository = "vllm", "/no/such/repository"
    mine = load(home=settings.home, vllm_repository=str(upstream.bare))
    assert git_source(small, "v1.0.0", "vllm@v1.0.0", mine).version == "1.0.0"


def test_no_git(upstream, small, settings, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingTool, match=r"There is no git.*Install git"):
        take(small, "main", settings)
