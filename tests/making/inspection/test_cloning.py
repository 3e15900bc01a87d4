"""Cloning: results, refusals, and no leftovers."""

import asyncio
import os
import socket
import time
from pathlib import Path

import pytest

from engine.making.repositories.addresses import CloneFailed, CloneFailure
from engine.making.repositories.cloning import CloneLimits, Cloner, _tidied  # pyright: ignore[reportPrivateUsage]
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.network import through
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.egress import Egress
from tests.making.inspection.deep import deep_folder
from tests.making.inspection.git import commit, git, repository
from tests.making.inspection.http_git import http_repositories
from tests.parts import sandboxing
from toolagent.contracts.sandbox import SandboxPolicy

HOST = "repositories.test"


def cloner(launcher: Launcher, sandbox: Sandboxing, limits: CloneLimits | None = None, path: str | None = None) -> Cloner:
    executor = Executor(launcher, sandbox.sandbox)
    return Cloner(executor, through(sandbox.egress), schemes=("https", "http", "ssh", "file"), limits=limits, path=path)


async def resolve(host: str, _: int) -> list[str]:
    if host != HOST:
        raise OSError("there is no such host")
    return ["127.0.0.1"]


def remote_cloner(
    launcher: Launcher, sandbox: Sandboxing, tmp_path: Path, limits: CloneLimits | None = None, *, trusted: bool = True
) -> Cloner:
    """A cloner for which HOST is at this machine. git bypasses every proxy for 127.0.0.1 itself."""
    egress = Egress(tmp_path / "state", (), resolve=resolve)
    return Cloner(Executor(launcher, sandbox.sandbox), through(egress, trusted=trusted), schemes=("https", "http"), limits=limits)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def is_there(path: Path) -> bool:
    return path.exists()


async def failing(cloner: Cloner, url: str, into: Path) -> CloneFailure:
    with pytest.raises(CloneFailed) as caught:
        await cloner.clone(url, into)
    assert not is_there(into)
    return caught.value.kind


async def test_a_task_may_name_a_branch_a_tag_or_a_commit(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    url = repository(tmp_path / "origin", {"x": "old"})
    git(tmp_path / "origin", "tag", "v1")
    first = git(tmp_path / "origin", "rev-parse", "HEAD")
    git(tmp_path / "origin", "checkout", "--quiet", "-b", "dev/next")
    second = commit(tmp_path / "origin", {"x": "new"})
    git(tmp_path / "origin", "checkout", "--quiet", "main")
    for ref, expected in (("v1", first), ("dev/next", second), (second, second)):
        clone = await cloner(launcher, sandbox).clone(url, tmp_path / "clone", ref)
        assert (clone.commit, (clone.folder / "x").read_text()) == (expected, "old" if expected == first else "new")
    with pytest.raises(CloneFailed):
        await cloner(launcher, sandbox).clone(url, tmp_path / "clone", "nowhere")


async def test_a_clone_is_the_newest_commit_without_git_s_own_files(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    url = repository(tmp_path / "origin", {"a.txt": "old", "folder/b.txt": "b"})
    newest = commit(tmp_path / "origin", {"a.txt": "new"})
    clone = await cloner(launcher, sandbox).clone(url, tmp_path / "clone")
    assert clone.commit == newest
    files = {path.relative_to(clone.folder).as_posix(): path.read_text() for path in clone.folder.rglob("*") if path.is_file()}
    assert files == {"a.txt": "new", "folder/b.txt": "b"}


async def test_a_repository_is_cloned_over_http_from_its_host_alone(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    repository(tmp_path / "served" / "origin", {"a.txt": "a"})
    with http_repositories(tmp_path / "served") as port:
        cloner = remote_cloner(launcher, sandbox, tmp_path)
        clone = await cloner.clone(f"http://{HOST}:{port}/origin/.git", tmp_path / "clone")
        missing = await failing(cloner, f"http://{HOST}:{port}/other", tmp_path / "other")
    assert (clone.folder / "a.txt").read_text() == "a"
    assert missing is CloneFailure.NOT_FOUND


async def test_what_a_dead_worker_left_is_no_part_of_the_next_clone(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    url = repository(tmp_path / "origin", {"a.txt": "a"})
    (tmp_path / "clone" / "work" / "repository").mkdir(parents=True)
    (tmp_path / "clone" / "work" / "repository" / "half").write_text("half")
    clone = await cloner(launcher, sandbox).clone(url, tmp_path / "clone")
    assert names_in(clone.folder) == ["a.txt"]


async def test_links_that_lead_out_are_dropped_and_those_inside_stay(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    (tmp_path / "origin").mkdir()
    for name, leads_to in (("out", "/etc/passwd"), ("up", "../../git.config"), ("circle", "circle"), ("inside", "folder/b.txt")):
        (tmp_path / "origin" / name).symlink_to(leads_to)
    (tmp_path / "origin" / "folder").mkdir()
    (tmp_path / "origin" / "folder" / "b.txt").write_text("b")
    git(tmp_path / "origin", "init", "--quiet")
    commit(tmp_path / "origin", {})
    clone = await cloner(launcher, sandbox).clone(f"file://{tmp_path / 'origin'}", tmp_path / "clone")
    assert clone.dropped == ("circle", "out", "up")
    assert (clone.folder / "inside").read_text() == "b"


async def test_no_hook_filter_or_submodule_of_a_repository_is_run(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    inner = repository(tmp_path / "inner", {"inner.txt": "inner"})
    attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
    url = repository(tmp_path / "origin", {".gitattributes": attributes, "large.bin": "version https://git-lfs.github.com/spec/v1\n"})
    git(tmp_path / "origin", "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", inner, "inner")
    commit(tmp_path / "origin", {})
    clone = await cloner(launcher, sandbox).clone(url, tmp_path / "clone")
    assert (clone.folder / "large.bin").read_text().startswith("version https")
    assert names_in(clone.folder / "inner") == []


async def test_a_repository_that_is_too_large_is_given_up_while_it_is_cloned(
    tmp_path: Path, launcher: Launcher, sandbox: Sandboxing
) -> None:
    url = repository(tmp_path / "origin", {f"{number}.txt": "x" * 100_000 for number in range(20)})
    assert await failing(cloner(launcher, sandbox, CloneLimits(max_bytes=1_000_000)), url, tmp_path / "clone") is CloneFailure.TOO_LARGE
    assert await failing(cloner(launcher, sandbox, CloneLimits(max_files=15)), url, tmp_path / "clone") is CloneFailure.TOO_LARGE


async def test_links_count_as_what_they_lead_to(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    (tmp_path / "origin").mkdir()
    for number in range(20):
        (tmp_path / "origin" / f"{number}.txt").symlink_to("large.txt")
    git(tmp_path / "origin", "init", "--quiet")
    commit(tmp_path / "origin", {"large.txt": "x" * 100_000})
    url = f"file://{tmp_path / 'origin'}"
    assert await failing(cloner(launcher, sandbox, CloneLimits(max_bytes=2_000_000)), url, tmp_path / "clone") is CloneFailure.TOO_LARGE
    assert (await cloner(launcher, sandbox, CloneLimits(max_bytes=3_000_000)).clone(url, tmp_path / "clone")).folder.is_dir()


def test_folders_may_be_deeper_and_links_named_otherwise_than_python_likes(tmp_path: Path) -> None:
    with deep_folder(tmp_path / "clone"):
        Path(os.fsdecode(os.fsencode(tmp_path / "clone") + b"/\xff")).symlink_to("/etc/passwd")
        assert _tidied(tmp_path / "clone") == ("\N{REPLACEMENT CHARACTER}",)


async def test_a_repository_that_is_not_there_or_empty_is_not_found(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    (tmp_path / "plain").mkdir()
    for name in ("none", "empty", "plain"):
        assert await failing(cloner(launcher, sandbox), f"file://{tmp_path / name}", tmp_path / "clone") is CloneFailure.NOT_FOUND


async def test_a_host_that_does_not_answer_ends_with_the_time_limit(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://{HOST}:{mute.getsockname()[1]}/owner/name"
        kind = await failing(remote_cloner(launcher, sandbox, tmp_path, CloneLimits(wall_s=2.0)), url, tmp_path / "clone")
    assert kind is CloneFailure.TIMEOUT


async def test_a_private_address_is_not_allowed(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    cloner = remote_cloner(launcher, sandbox, tmp_path, trusted=False)
    assert await failing(cloner, f"https://{HOST}/owner/name", tmp_path / "clone") is CloneFailure.NOT_ALLOWED


async def test_a_host_without_an_address_is_unavailable(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    cloner = remote_cloner(launcher, sandbox, tmp_path)
    assert await failing(cloner, "https://elsewhere.test/owner/name", tmp_path / "clone") is CloneFailure.UNAVAILABLE


async def test_a_host_that_the_policy_does_not_name_is_not_allowed(tmp_path: Path, launcher: Launcher, state: Path) -> None:
    sandbox = sandboxing(state, launcher, tmp_path / "environments", SandboxPolicy(hosts=("example.com",)))
    assert await failing(cloner(launcher, sandbox), "https://example.org/owner/name", tmp_path / "clone") is CloneFailure.NOT_ALLOWED


async def test_without_git_or_sandbox_cloning_is_unavailable(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    url = repository(tmp_path / "origin", {"a.txt": "a"})
    assert await failing(cloner(launcher, sandbox, path="/nonexistent"), url, tmp_path / "clone") is CloneFailure.UNAVAILABLE
    without = Cloner(Executor(launcher, "there is none"), schemes=("file",))
    assert await failing(without, url, tmp_path / "clone") is CloneFailure.UNAVAILABLE


async def test_a_cancelled_clone_leaves_nothing(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mute.settimeout(20)
        url = f"http://{HOST}:{mute.getsockname()[1]}/owner/name"
        cloning = asyncio.create_task(remote_cloner(launcher, sandbox, tmp_path).clone(url, tmp_path / "clone"))
        connection, _ = await asyncio.to_thread(mute.accept)
        cloning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cloning
        connection.close()
    assert not is_there(tmp_path / "clone")


EMBEDDED = {"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\tbare = true\n\tfsmonitor = {ran}\n", "objects/x": "", "refs/heads/x": ""}


async def test_no_command_that_a_repository_s_configuration_names_is_run(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing) -> None:
    """Neither of the cloned repository, nor of one among its files."""
    ran = "touch ran; false"
    url = repository(tmp_path / "origin", {"a.txt": "a", **{f"inner/{name}": text.format(ran=ran) for name, text in EMBEDDED.items()}})
    for name in ("core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook", "filter.x.smudge", "core.pager", "diff.external"):
        git(tmp_path / "origin", "config", name, ran)
    for name in ("post-checkout", "post-merge", "reference-transaction", "fsmonitor-watchman"):
        hook = tmp_path / "origin" / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{ran}\n")
        hook.chmod(0o755)
    git(tmp_path / "origin", "config", "core.hooksPath", str(tmp_path / "origin" / ".git" / "hooks"))
    clone = await cloner(launcher, sandbox).clone(url, tmp_path / "clone")
    assert names_in(clone.folder) == ["a.txt", "inner"]
    assert not list(tmp_path.rglob("ran"))  # noqa: ASYNC240 - few files


@pytest.mark.parametrize("number_of", [25_000, pytest.param(100_000, marks=pytest.mark.long)])
async def test_more_files_than_a_repository_may_have_are_refused_soon_and_leave_nothing(
    number_of: int, tmp_path: Path, launcher: Launcher, sandbox: Sandboxing
) -> None:
    (tmp_path / "origin").mkdir()
    git(tmp_path / "origin", "init", "--quiet")
    files = "".join(f"M 100644 :1 f{number % 300}/{number}\n" for number in range(number_of))
    commits = f"blob\nmark :1\ndata 1\nx\ncommit refs/heads/main\ncommitter A <a@example.com> 1 +0000\ndata 1\nx\n{files}\n"
    git(tmp_path / "origin", "fast-import", "--quiet", stdin=commits)
    begun = time.monotonic()
    assert await failing(cloner(launcher, sandbox), f"file://{tmp_path / 'origin'}", tmp_path / "clone") is CloneFailure.TOO_LARGE
    assert time.monotonic() - begun < 60
