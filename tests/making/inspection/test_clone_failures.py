"""The messages of ssh, git and well-known hosts when a clone fails, and the reason that a person is told."""

import signal

import pytest

from engine.making.repositories.addresses import CloneFailure, repository_address
from engine.making.repositories.clone_failures import failure_of, ssh_failure_of, too_large
from engine.making.repositories.trees import Extent
from engine.runtimes.environments.execution import Execution
from engine.runtimes.process.box import Ending

GIT = b"fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n"
CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Host key verification failed.
"""
UNKNOWN = "No ED25519 host key is known for host.test and you have requested strict checking.\r\nHost key verification failed.\r\n"


def execution(stderr: bytes = GIT) -> Execution:
    return Execution(128, b"", stderr, Ending(), 1.0)


@pytest.mark.parametrize(
    ("words", "kind", "told"),
    [
        (UNKNOWN, CloneFailure.NOT_TRUSTED, "`ssh-keyscan host.test`"),
        (CHANGED, CloneFailure.NOT_TRUSTED, "says: WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!"),
        ("git@host.test: Permission denied (publickey).\r\n", CloneFailure.DENIED, "TOOL_AGENT_REPO_SSH_KEY"),
        ("@ WARNING: UNPROTECTED PRIVATE KEY FILE! @\nPermission denied (publickey).\n", CloneFailure.DENIED, "`chmod 600` it"),
        ("ERROR: Repository not found.\n", CloneFailure.NOT_FOUND, "may not read it"),
        ("fatal: '/x' does not appear to be a git repository\n", CloneFailure.NOT_FOUND, "fatal: '/x'"),
        ("sh: 1: git-upload-pack: command not found\n", CloneFailure.REFUSED, "as git does"),
        ("ssh: connect to host 192.0.2.1 port 22: Connection timed out\r\n", CloneFailure.UNAVAILABLE, "cannot be reached"),
        ("kex_exchange_identification: Connection closed by remote host\n", CloneFailure.UNAVAILABLE, "broke off"),
        ("Unable to negotiate with 192.0.2.1 port 22: no matching host key type found.\n", CloneFailure.UNAVAILABLE, "no matching"),
        ("something new\n", CloneFailure.REFUSED, "git could not clone from host.test"),
        ("", CloneFailure.REFUSED, "git says: fatal: Could not read"),
    ],
)
def test_what_ssh_says_is_told_with_what_to_do(words: str, kind: CloneFailure, told: str) -> None:
    failure = ssh_failure_of(execution(), repository_address("git@host.test:o/n", ("ssh",)), words)
    assert (failure.kind, told in failure.message) == (kind, True), failure.message


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (Execution(128 + signal.SIGXFSZ, b"", b"", Ending(), 1.0), "more disk than it may"),
        (Execution(128 + signal.SIGKILL, b"", b"", Ending(out_of_memory=True), 1.0), "more memory (1 GiB) than it may"),
        (Execution(128 + signal.SIGKILL, b"", b"", Ending(), 1.0), "ended by SIGKILL"),
        (Execution(1, b"", b"", Ending(processes_refused=True), 1.0), "more processes (64) than it may"),
        (Execution(128 + signal.SIGKILL, b"", b"x", Ending(), 1.0, "stderr"), "what git writes (stderr, 1 MiB)"),
        (Execution(128 + signal.SIGKILL, b"", b"", Ending(), 120.0, "time"), "TOOL_AGENT_REPO_TIMEOUT_S"),
    ],
)
def test_a_clone_that_a_limit_ended_says_which(done: Execution, told: str) -> None:
    failure = failure_of(done, repository_address("https://host.test/o/n", ("https",)), ())
    assert (told in failure.message, "git says" in failure.message) == (True, False), failure.message


def test_a_repository_that_is_damaged_over_there_is_not_too_large() -> None:
    said = (
        b"remote: fatal: unable to read 12c2\nremote: aborting due to possible repository corruption on the remote side.\n"
        b"fatal: early EOF\nfatal: fetch-pack: invalid index-pack output\n"
    )
    failure = failure_of(execution(said), repository_address("https://host.test/o/n", ("https",)), ())
    assert (failure.kind, "git says: remote: fatal: unable to read 12c2" in failure.message) == (CloneFailure.REFUSED, True)


def test_the_limit_that_was_passed_is_named_with_its_setting() -> None:
    size, count = Extent(size=300 << 20, count=10), Extent(size=5, count=20_001)
    assert [word in too_large(size, 256 << 20, 20_000).message for word in ("256 MiB", "TOOL_AGENT_REPO_MAX_BYTES")] == [True, True]
    assert [word in too_large(count, 256 << 20, 20_000).message for word in ("20,000 files", "TOOL_AGENT_REPO_MAX_FILES")] == [True, True]
