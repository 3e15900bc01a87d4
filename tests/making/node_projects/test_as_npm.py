"""Build scripts that call pnpm or yarn, where npm does the work: it is done, or refused with a sentence."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest

from engine.making.node_projects import preparing
from engine.making.node_projects.workspaces import laid_out

_AS_NPM = Path(preparing.__file__).parent / "inside/as_npm.sh"
NPM = shutil.which("npm")
pytestmark = pytest.mark.skipif(NPM is None, reason="npm is not on this machine.")
NOTES = """node -e "fs.appendFileSync(process.env.NOTES, process.env.npm_package_name + process.argv.slice(1).join(',') + ';')" --"""
_REFUSED = 2


def folder_of(root: Path, files: Mapping[str, object]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(json.dumps(content))
    for name in ("pnpm", "yarn"):
        (root / "runners").mkdir(exist_ok=True)
        (root / "runners" / name).write_text(_AS_NPM.read_text())
        (root / "runners" / name).chmod(0o755)
    program = root / "node_modules/.bin/note"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "program $*;" >> "$NOTES"\n')
    program.chmod(0o755)
    return root


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Two packages and one that has no script `build`; the folder of one has a blank in its name."""
    scripts = {"build": NOTES, "built": NOTES}
    return folder_of(
        tmp_path,
        {
            "package.json": {"name": "root", "private": True, "workspaces": ["client", "my server", "empty"], "scripts": {"own": NOTES}},
            "client/package.json": {"name": "client", "scripts": scripts},
            "my server/package.json": {"name": "@x/server", "scripts": scripts | {"-odd": NOTES, "test it": NOTES}},
            "empty/package.json": {"name": "empty", "scripts": {"built": NOTES}},
            "lacking/package.json": {"name": "lacking", "dependencies": {"ms": "*"}},
        },
    )


def ran(root: Path, command: str, name: str = "asked") -> tuple[int, str, str]:
    """Runs a line as a script of the project; returns its exit code, what was noted and what was told as an error."""
    manifest = json.loads((root / "package.json").read_text())
    manifest.setdefault("scripts", {})[name] = command
    (root / "package.json").write_text(json.dumps(manifest))
    notes = root / "notes"
    notes.write_text("")
    path = f"{root / 'runners'}:{os.environ['PATH']}"  # noqa: TID251 - where Node.js is
    environment = {"PATH": path, "HOME": str(root), "NOTES": str(notes), "npm_config_update_notifier": "false"}
    done = subprocess.run([NPM or "npm", "run", name], cwd=root, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, notes.read_text(), done.stderr


@pytest.mark.parametrize(
    ("command", "noted"),
    [
        ("pnpm --filter client build", "client;"),
        ("pnpm run --filter=client build --watch 'a b'", "client--watch,a b;"),
        ("pnpm -F './my server' -r build", "@x/server;"),
        ("pnpm -r --workspace-concurrency 1 build", "client;@x/server;"),
        ("pnpm run -r build", "client;@x/server;"),
        ("pnpm --filter @x/server --filter client build", "@x/server;client;"),
        ("yarn --cwd=client build && pnpm --dir=client build && pnpm -C=client run build", "client;client;client;"),
        ("yarn --cwd 'my server' run -s build && yarn own", "@x/server;root;"),
        ("yarn workspace client build && yarn workspace client run build", "client;client;"),
        ("yarn workspace @x/server 'test it'", "@x/server;"),
        ("yarn workspaces run built", "client;@x/server;empty;"),
        ("yarn note 1 && pnpm exec -- note 2 && pnpm -C client note 3", "program 1;program 2;program 3;"),
        ("pnpm run --if-present never && pnpm -r --if-present never && yarn install --frozen-lockfile && yarn", ""),
    ],
)
def test_what_is_understood_is_done(workspace: Path, command: str, noted: str) -> None:
    assert ran(workspace, command) == (0, noted, "")


def test_members_are_built_after_what_they_depend_on_as_pnpm_does(tmp_path: Path) -> None:
    on = {"dependencies": {"c": "workspace:*"}}, {"devDependencies": {"b": "workspace:*"}}
    built: dict[str, object] = {"scripts": {"build": NOTES}}
    root = folder_of(
        tmp_path,
        {
            "package.json": {"name": "root", "private": True, "workspaces": ["packages/*"]},
            "packages/a/package.json": {"name": "a", **built, **on[1]},
            "packages/b/package.json": {"name": "b", **built, **on[0]},
            "packages/c/package.json": {"name": "c", **built},
        },
    )
    laid_out(root, PurePosixPath())
    assert ran(root, "pnpm -r build") == (0, "c;b;a;", "")


@pytest.mark.parametrize(
    ("command", "noted", "told"),
    [
        ("pnpm --filter 'client...' build", "", "the filter 'client...' is not understood"),
        ("pnpm --filter '!client' build", "", "the filter '!client' is not understood"),
        ("pnpm --filter '@x/*' build", "", "the filter '@x/*' is not understood"),
        ("pnpm --filter", "", "--filter names nothing"),
        ("pnpm -w build", "", "the option '-w' is not understood"),
        ("pnpm --version", "", "the option '--version' is not understood"),
        ("pnpm run '-odd'", "", "the option '-odd' is not understood"),
        ("pnpm -r never", "", "no package has a script 'never'"),
        ("pnpm -r exec note", "", "'exec' in several packages is not understood"),
        ("pnpm --dir=never build", "", "there is no folder 'never'"),
        ("pnpm env x && pnpm test x", "", "there is no script and no installed program 'env'"),
        ("pnpm add ms", "", "'add' is not understood"),
        ("pnpm install ms", "", "'ms' cannot be installed now"),
        ("yarn --cwd=lacking", "", "not installed, because the project does not name it itself: ms"),
        ("yarn workspaces foreach run build", "", "'workspaces foreach' is not understood"),
        ("pnpm run", "", "it is not said what to run"),
    ],
)
def test_what_is_not_certain_is_refused_with_a_sentence(workspace: Path, command: str, noted: str, told: str) -> None:
    code, done, error = ran(workspace, command)
    assert (code, done) == (_REFUSED, noted)
    assert f"error: {told}. npm does here what the build asks of " in error
    assert str(workspace) not in error.splitlines()[0]  # callers see it


@pytest.mark.parametrize("command", ["pnpm --filter never build", "pnpm --filter empty build", "yarn workspace client never"])
def test_what_npm_does_not_find_fails(workspace: Path, command: str) -> None:
    code, done, error = ran(workspace, command)
    assert (code != 0, done) == (True, "")
    assert "npm error" in error


def test_where_one_package_has_no_such_script_the_others_run_and_it_fails(workspace: Path) -> None:
    """As yarn does it."""
    code, done, error = ran(workspace, "yarn workspaces run build")
    assert (code != 0, done) == (True, "client;@x/server;")
    assert "Missing script" in error


@pytest.mark.parametrize(
    ("name", "command", "told"),
    [
        ("build", "pnpm build", "the script calls itself"),
        ("build", "yarn run build x", "scripts call each other too often"),
        ("build", "pnpm --dir . build", "the script calls itself"),
    ],
)
def test_a_script_that_calls_itself_ends(workspace: Path, name: str, command: str, told: str) -> None:
    code, done, error = ran(workspace, command, name)
    assert (code, done) == (_REFUSED, "")
    assert f"error: {told}. npm" in error
