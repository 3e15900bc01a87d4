"""No file names a package registry or a path of a machine; locks have hashes and no addresses."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

# Put together here, so that this file does not hold what it looks for.
HOSTS = (
    ("py", "pi.org"),
    ("files.python", "hosted"),
    ("registry.npm", "js"),
    ("npm", "js.com"),
    ("registry.yarn", "pkg"),
    ("npm", "mirror.com"),
)
FOLDERS = ("work", "root", "home", "Users", "opt")
HOST = re.compile("|".join(re.escape("".join(parts)) for parts in HOSTS), re.IGNORECASE)
# The home of a program in a sandbox or a container: no machine's, every run has its own.
OURS = "home/tool"
# An absolute path starts where no other path or address is going on.
MACHINE_PATH = re.compile(rf"(?<![\w.~$}}/)\]-])/(?!{OURS}(?![\w-]))(?:" + "|".join(FOLDERS) + r")/\w")


def _finds(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in (HOST, MACHINE_PATH):
            yield from (f"line {number}: {match.group()}" for match in pattern.finditer(line))


def _text(path: Path) -> str:
    content = path.read_bytes()
    return "" if b"\0" in content else content.decode("utf-8", errors="replace")


def _lock_faults(text: str) -> Iterator[str]:
    """Requirements without a hash, options and addresses in a lock."""
    joined = text.replace("\\\n", " ")
    requirements = [line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    yield from (f"option {line!r}" for line in requirements if line.startswith("-"))
    yield from (f"no hash: {line!r}" for line in requirements if not line.startswith("-") and "--hash=sha256:" not in line)
    yield from (f"address: {line!r}" for line in text.splitlines() if "://" in line or "http" in line.split("#")[0].split("==")[-1])
    if not requirements and "#" not in text:
        yield "empty"


def test_no_file_names_a_registry_or_a_place_on_a_machine(root: Path, files: tuple[Path, ...]) -> None:
    assert {str(path): found for path in files if (found := [*_finds(_text(root / path))])} == {}


def test_every_lock_has_hashes_and_no_address(root: Path, files: tuple[Path, ...]) -> None:
    locks = [path for path in files if path.name == "requirements.lock"]
    assert Path("requirements.lock") in locks
    assert {str(path): faults for path in locks if (faults := [*_lock_faults((root / path).read_text("utf-8"))])} == {}


def test_no_lock_with_addresses_is_kept(files: tuple[Path, ...]) -> None:
    assert [str(path) for path in files if path.name in {"uv.lock", "poetry.lock", "Pipfile.lock"}] == []


@pytest.mark.parametrize("parts", HOSTS)
def test_a_registry_is_caught(parts: tuple[str, str]) -> None:
    assert [*_finds(f"index = https://{''.join(parts)}/simple")]


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("before", ["", " ", '"', "'", "(", "=", ":", "file://"[:-1] + " "])
def test_a_place_on_a_machine_is_caught(folder: str, before: str) -> None:
    assert [*_finds(f"{before}/{folder}/somebody/tool.py")]


@pytest.mark.parametrize("more", ["s/a", "-agent", "_box/b"])
def test_a_place_that_only_begins_like_the_home_of_a_sandbox_is_caught(more: str) -> None:
    assert [*_finds(f"/{OURS}{more}")]


@pytest.mark.parametrize(
    "text", ["tests/work/a", "https://example.test/root/a", "$HOME/work/a", "/usr/bin/a", "./home/a", "HOME=/home/tool"]
)
def test_other_paths_pass(text: str) -> None:
    assert [*_finds(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "a==1\n",
        "a==1 \\\n    --hash=sha256:00\nb==2\n",
        "--index-url example\na==1 --hash=sha256:00\n",
        "-i example\na==1 --hash=sha256:00\n",
        "a @ https://example.test/a.whl --hash=sha256:00\n",
        "",
    ],
)
def test_a_lock_without_hashes_or_with_an_address_is_caught(text: str) -> None:
    assert [*_lock_faults(text)]


def test_a_lock_with_hashes_passes() -> None:
    assert [
        *_lock_faults("# make lock\nhttpx==1 ; python_version < '4' \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n    # via a\n")
    ] == []
