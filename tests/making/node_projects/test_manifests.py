"""What is read of a package.json, and the packages of a repository that belong together."""

import json
import os
from pathlib import Path, PurePosixPath

import pytest
from pydantic import JsonValue

from engine.making.failures import LockFailed, NotWanted
from engine.making.node_projects.manifests import build_script, bundled, named, programs_of, started_of
from engine.making.node_projects.plain_files import new_folder, require_plain, text_of
from engine.making.node_projects.preparing import engines_note, require_own_archives
from engine.making.node_projects.workspaces import Package, laid_out
from engine.making.python_sources.projects import Table


def written(folder: Path, files: dict[str, JsonValue]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_programs_that_cannot_be_ones_are_left_out_with_a_reason() -> None:
    bins: dict[str, object] = {"ok": "./cli.js", 'a"; evil': "cli.js", "up": "../../x.js", "root": "/x.js", "line": "a\nb.js"}
    found = programs_of(Table({"bin": bins}))
    assert found.files == {"ok": "cli.js"}
    assert [one.operation for one in found.left_out] == ['a"; evil', "up", "root", "line"]


def test_of_very_many_programs_twenty_are_taken() -> None:
    found = programs_of(Table({"bin": {f"p{number}": "cli.js" for number in range(100_000)}}))
    assert len(found.files) == 20
    assert "more than 20 programs" in found.left_out[0].reason
    assert len(found.left_out) < 50


def test_a_project_without_a_name_or_version_gets_one_that_npm_takes() -> None:
    assert named(Table({"devEngines": {}}), PurePosixPath("apps/My App")).values == {"name": "my-app", "version": "0.0.0"}
    assert named(Table({"name": "@a/b", "version": "1.2.3-rc.1"}), PurePosixPath()).values == {"name": "@a/b", "version": "1.2.3-rc.1"}


@pytest.mark.parametrize(
    ("start", "file"),
    [
        ("node dist/main/server.js", "dist/main/server.js"),
        ("nodemon --inspect src/server.js", "src/server.js"),
        ("NODE_ENV=x node --enable-source-maps ./a.mjs", "a.mjs"),
        ("next start", "index.js"),
    ],
)
def test_what_a_project_is_started_as_is_read(start: str, file: str) -> None:
    assert started_of(Table({"scripts": {"start": start}, "main": "index.js"}))[0] == file


def test_what_is_there_is_not_built_and_what_is_made_is(tmp_path: Path) -> None:
    written(tmp_path, {"cli.js": ""})
    scripts: dict[str, object] = {"build": "tsc"}
    assert build_script(Table({"bin": {"a": "cli.js"}, "scripts": scripts}), tmp_path) == ""
    assert build_script(Table({"bin": {"a": "dist/cli.js"}, "scripts": scripts}), tmp_path) == "build"
    assert build_script(Table({"bin": {"a": "bundle.js"}, "scripts": {"prepare": "tsc"}}), tmp_path) == "prepare"


@pytest.mark.parametrize("start", ["bun ./src/index.ts", "npx tsx watch src/index.ts", "node --import tsx src/index.ts"])
def test_typescript_that_is_run_as_it_is_is_bundled_for_node(tmp_path: Path, start: str) -> None:
    found = bundled(Table({"scripts": {"start": start}, "main": "index.js", "bin": {"a": "cli.ts", "b": "b.js"}}), tmp_path)
    assert started_of(found)[-1] == "dist/src/index.mjs"
    assert programs_of(found).files == {"a": "dist/cli.mjs", "b": "b.js"}
    assert "--packages=external --outfile=dist/src/index.mjs" in found.table("scripts").text("build")
    built = Table({"scripts": {"start": start, "build": "tsc"}})
    assert bundled(built, tmp_path) is built


@pytest.mark.parametrize(
    "told",
    [
        {"main": "server.js", "scripts": {"dev": "bun run src/playground.ts"}},
        {"scripts": {"start": "node server.js", "dev": "tsx watch scripts/dev.ts"}},
        {"main": "server", "module": "src/index.ts", "bin": {"a": "cli.js"}},
    ],
)
def test_a_project_that_starts_in_javascript_is_left_as_it_is(tmp_path: Path, told: dict[str, object]) -> None:
    project = Table(told)
    assert bundled(project, written(tmp_path, {"server.js": ""})) is project


def test_typescript_beside_a_start_in_javascript_is_bundled_where_start_or_a_program_is_it(tmp_path: Path) -> None:
    found = bundled(Table({"main": "index.js", "scripts": {"start": "bun src/server.ts"}}), written(tmp_path, {"index.js": ""}))
    assert started_of(found) == ("dist/src/server.mjs",)
    found = bundled(Table({"main": "index.js", "bin": {"a": "cli.ts"}}), tmp_path)
    assert (started_of(found), programs_of(found).files) == (("index.js",), {"a": "dist/cli.mjs"})


@pytest.mark.parametrize(
    ("wanted", "is_told"), [(">=18", False), ("14.x", True), ("^18 || ^20", False), ("<20", True), ("12.13.0", True), ("lts", False)]
)
def test_a_project_for_another_node_is_told(wanted: str, *, is_told: bool) -> None:
    assert bool(engines_note(Table({"engines": {"node": wanted}}), "v20.20.2")) is is_told


def test_what_a_project_needs_of_its_workspace_is_found_each_before_its_users(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        {
            "package.json": {"private": True, "workspaces": ["packages/*"]},
            "packages/cli/package.json": {"name": "@x/cli", "version": "1.0.0", "dependencies": {"@x/core": "workspace:*", "ms": "2"}},
            "packages/core/package.json": {"name": "@x/core", "dependencies": {"@x/base": "*"}, "devDependencies": {"@x/test": "*"}},
            "packages/base/package.json": {"name": "@x/base", "dependencies": {"@x/core": "*"}},
            "packages/test/package.json": {"name": "@x/test"},
            "packages/other/package.json": {"name": "@x/other"},
        },
    )
    found = laid_out(source, PurePosixPath("packages/cli"))
    assert found.root == PurePosixPath()
    assert [one.name for one in found.siblings] == ["@x/base", "@x/test", "@x/core"]
    assert [one.name for one in found.installed] == ["@x/base", "@x/core"]
    assert found.installed[0].archive == "x-base-0.0.0.tgz"
    assert found.project.manifest.table("dependencies").values == {"@x/core": "*", "ms": "2"}
    needed = ["packages/base", "packages/test", "packages/core", "packages/cli"]
    assert json.loads((source / "package.json").read_text())["workspaces"] == needed


def test_of_two_packages_that_are_packed_alike_neither_takes_the_place_of_the_other(tmp_path: Path) -> None:
    values = [{"name": name, "version": "1.0.0"} for name in ("@a/b", "a-b")]
    alike = [Package(PurePosixPath(str(number)), Table(one)) for number, one in enumerate(values)]
    with pytest.raises(NotWanted, match=r"@a/b and a-b are both packed as a-b-1\.0\.0\.tgz"):
        require_own_archives(alike)
    files: dict[str, JsonValue] = {"package.json": {"dependencies": {"../x": "file:x"}}, "x/package.json": {"name": "x"}}
    assert laid_out(written(tmp_path, files), PurePosixPath()).siblings == ()


def test_a_workspace_of_pnpm_is_one_of_npm_with_the_versions_of_its_catalog(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        {
            "package.json": {"private": True},
            "pnpm-workspace.yaml": "packages:\n  - 'apps/**'\n  - '!apps/old'\ncatalog:\n  ms: 2.1.3\n",
            "apps/a/package.json": {"name": "a", "dependencies": {"ms": "catalog:", "b": "link:../b"}},
            "apps/b/package.json": {"name": "bb"},
            "apps/old/package.json": {"name": "old"},
        },
    )
    found = laid_out(source, PurePosixPath("apps/a"))
    assert found.project.manifest.table("dependencies").values == {"ms": "2.1.3", "b": "file:../b"}
    assert [one.name for one in found.installed] == ["b"]
    assert laid_out(source, PurePosixPath("apps/old")).root == PurePosixPath("apps/old")


@pytest.mark.parametrize("text", ["[" * 100_000, "a: &a [*a]", "packages: 3", "packages: [[1]]", "{", "- x"])
def test_a_workspace_file_that_attacks_is_none(tmp_path: Path, text: str) -> None:
    written(tmp_path, {"package.json": {"name": "a"}, "pnpm-workspace.yaml": text})
    assert laid_out(tmp_path, PurePosixPath()).siblings == ()


def test_folders_that_were_swapped_for_links_are_refused(tmp_path: Path) -> None:
    work = tmp_path / "work"
    written(work, {"source/package.json": {}})
    written(tmp_path, {"elsewhere/package.json": "ours"})
    require_plain(work, work / "source")
    (work / "swapped").symlink_to(tmp_path / "elsewhere")
    for folder in (work / "swapped", work / "swapped" / "deeper", work / "gone"):
        with pytest.raises(LockFailed):
            require_plain(work, folder)
    with pytest.raises(LockFailed):
        new_folder(work, "swapped")


def test_pipes_and_links_are_no_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("pipe", "link", "none"):
        with pytest.raises(NotWanted):
            text_of(tmp_path / name)


HARMFUL = {
    "values that stand for others": "packages: ['a']\nx: &a [1]\ny: [*a, *a]\n",
    "keys that bring in others": "a0: &a0 {x: 1}\na1: {<<: [*a0, *a0]}\npackages: ['a']\n",
    "no truth": "packages: ['a']\nx: !!bool foo\n",
    "no number": "packages: ['a']\nx: !!int ''\n",
    "no time": "packages: ['a']\nx: !!timestamp foo\n",
    "very deep": "packages: " + "[" * 2_000,
}


@pytest.mark.parametrize("text", HARMFUL.values(), ids=HARMFUL)
def test_a_workspace_that_is_made_to_harm_is_none(tmp_path: Path, text: str) -> None:
    written(tmp_path, {"package.json": {"name": "own", "version": "1.0.0"}})
    (tmp_path / "pnpm-workspace.yaml").write_text(text)
    assert laid_out(tmp_path, PurePosixPath()).siblings == ()
