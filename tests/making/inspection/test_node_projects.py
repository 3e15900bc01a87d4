"""Node.js projects in the wild: locks that do not fit, workspaces, hostile builds."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.making.building.builds import Built, Job, Place
from engine.making.failures import BuildFailed
from engine.making.node_projects.building import NodeProgramBuilder
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.node_projects.preparing import NodeProjects
from engine.making.openapi.tools import Described
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.programs import Program
from engine.runtimes.local.boxed_runs import Sandboxing
from tests.parts import installer_of, machine_indexes
from tests.runtimes.conftest import silent
from toolagent_service.contracts.plans import ProgramBuild

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine.")

ABOUT = Described("notes", "Notes.")
CLI = 'if (process.argv.includes("--help")) console.log(`shout ${require("ms")(1000)}`);'
PACKAGE: dict[str, JsonValue] = {"name": "shout", "version": "1.0.0", "bin": {"shout": "cli.js"}, "dependencies": {"ms": "2.1.3"}}


MADE = "node -e \"fs.mkdirSync('dist'); fs.copyFileSync(process.argv[1], 'dist/first.js')\""


def written(folder: Path, files: dict[str, JsonValue]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


@pytest.fixture
def runs(executor: Executor, sandbox: Sandboxing) -> NpmRuns:
    known = sandbox.environments.programs
    return NpmRuns(executor, known, installer_of(machine_indexes(known), sandbox.egress))


@pytest.fixture
def programs(runs: NpmRuns, executor: Executor, sandbox: Sandboxing) -> NodeProgramBuilder:
    return NodeProgramBuilder(NodeProjects(runs, sandbox.environments), executor, sandbox.environments.programs)


async def built_of(programs: NodeProgramBuilder, repository: Path, place: Place, project: str = "") -> Built:
    return await programs.build(ProgramBuild(language="nodejs", project=project), Job(repository, ABOUT, place, silent))


def helps(built: Built) -> Sequence[str]:
    return [entry.manifest.description for entry in built.candidate.entries]


async def test_a_lock_that_does_not_fit_the_manifest_gives_way_and_the_evidence_says_so(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place
) -> None:
    lock: JsonValue = {"name": "shout", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "shout", "version": "1.0.0"}}}
    built = await built_of(
        programs, written(tmp_path / "origin", {"package.json": PACKAGE, "package-lock.json": lock, "cli.js": CLI}), place
    )
    assert helps(built)[0].endswith("shout 1s")
    assert "package-lock.json cannot be installed" in built.notes[0]


async def test_dependencies_that_do_not_fit_together_are_installed_all_the_same(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place
) -> None:
    package: dict[str, JsonValue] = {**PACKAGE, "dependencies": {"ms": "2.1.3", "react": "18.0.0", "react-dom": "17.0.2"}}
    built = await built_of(programs, written(tmp_path / "origin", {"package.json": package, "cli.js": CLI, "yarn.lock": ""}), place)
    assert helps(built)[0].endswith("shout 1s")
    assert "yarn.lock" in built.notes[0]
    assert "--legacy-peer-deps" in built.notes[1]


async def test_a_package_of_a_workspace_brings_what_it_depends_on_there(tmp_path: Path, programs: NodeProgramBuilder, place: Place) -> None:
    """git ignores the built files; a third package cannot be installed, and is not. No browser is downloaded."""
    made = "mkdir -p dist && cp src.js dist/index.js"
    files: dict[str, JsonValue] = {
        "package.json": {"private": True},
        "pnpm-workspace.yaml": "packages:\n  - packages/*\n",
        ".gitignore": "dist\n",
        "packages/.gitignore": "dist\n",
        "packages/cli/.gitignore": "dist\n",
        "packages/core/.gitignore": "dist\n",
        "packages/cli/package.json": {
            "name": "@x/cli", "bin": {"shout": "dist/index.js"}, "dependencies": {"@x/core": "workspace:^"}, "scripts": {"build": made},
        },
        "packages/cli/src.js": 'console.log(`shout ${require("@x/core")}`);',
        "packages/core/package.json": {
            "name": "@x/core", "main": "dist/index.js", "dependencies": {"ms": "2.1.3"},
            "scripts": {"build": made, "postinstall": 'test "$PUPPETEER_SKIP_DOWNLOAD" = 1'},
        },
        "packages/core/src.js": 'module.exports = require("ms")(2000);',
        "packages/other/package.json": {"name": "@x/other", "dependencies": {"ms": "99.99.99"}},
    }  # fmt: skip
    built = await built_of(programs, written(tmp_path / "origin", files), place, "packages/cli")
    assert helps(built)[0].endswith("shout 2s")
    assert (place.folder / "x-core-0.0.0.tgz").is_file()


async def test_a_program_that_says_how_it_is_used_as_a_failure_is_one(tmp_path: Path, programs: NodeProgramBuilder, place: Place) -> None:
    text = 'console.error("Usage: shout [words]"); process.exit(1);'
    # What is there need not be made.
    package: JsonValue = {**PACKAGE, "scripts": {"prepare": "exit 1"}}
    built = await built_of(programs, written(tmp_path / "origin", {"package.json": package, "cli.js": text}), place)
    assert helps(built)[0].endswith("Usage: shout [words]")


async def test_a_build_that_fails_after_it_made_what_is_needed_is_enough(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place
) -> None:
    package: dict[str, JsonValue] = {
        **PACKAGE,
        "bin": {"shout": "dist/cli.js"},
        "scripts": {"build": "mkdir dist && cp cli.js dist && exit 2"},
    }
    built = await built_of(programs, written(tmp_path / "origin", {"package.json": package, "cli.js": CLI}), place)
    assert helps(built)[0].endswith("shout 1s")
    assert "Its build ended with a failure" in built.notes[0]


async def test_a_project_that_is_built_by_bun_is_given_it(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place, sandbox: Sandboxing
) -> None:
    """A substitute for Bun, which copies."""
    bun = tmp_path / "any.exe"
    bun.write_text('#!/bin/sh\nmkdir -p dist && cp "$2" dist/cli.js\n')
    bun.chmod(0o755)
    sandbox.environments.programs = replace(sandbox.environments.programs, bun=Program(bun))
    scripts: JsonValue = {"build": "npm run bundle", "bundle": "bun build cli.js"}
    package: dict[str, JsonValue] = {**PACKAGE, "bin": {"shout": "dist/cli.js"}, "scripts": scripts}
    built = await built_of(programs, written(tmp_path / "origin", {"package.json": package, "cli.js": CLI}), place)
    assert helps(built)[0].endswith("shout 1s")


async def test_the_versions_of_a_lock_of_pnpm_are_kept_where_they_can_be_had(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place
) -> None:
    """Also those that it is built with."""
    made = "node -e \"fs.mkdirSync('dist'); fs.copyFileSync('cli.js', 'dist/' + require('debug/package.json').version + '.js')\""
    package: dict[str, JsonValue] = {
        **PACKAGE,
        "bin": {"shout": "dist/4.3.4.js"},
        "scripts": {"build": made},
        "dependencies": {"ms": "^2.0.0"},
        "devDependencies": {"debug": "^4.0.0"},
    }
    lock = "lockfileVersion: '9.0'\n\npackages:\n\n  ms@2.1.2:\n    resolution: {}\n\n  debug@4.3.4:\n    resolution: {}\n"
    text = 'console.log(`ms ${require("ms/package.json").version}`);'
    files: dict[str, JsonValue] = {"package.json": package, "pnpm-lock.yaml": lock, "cli.js": text}
    built = await built_of(programs, written(tmp_path / "origin", files), place)
    assert helps(built)[0].endswith("ms 2.1.2")
    assert "those of that lock where they could be had" in built.notes[0]


async def test_versions_of_a_lock_of_yarn_that_are_not_to_be_had_are_chosen_anew(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place
) -> None:
    lock = 'ms@^2.0.0:\n  version "2.99.99"\n'
    made: dict[str, JsonValue] = {**PACKAGE, "bin": {"shout": "dist/first.js"}, "scripts": {"build": f"{MADE} cli.js"}}
    built = await built_of(programs, written(tmp_path / "origin", {"package.json": made, "cli.js": CLI, "yarn.lock": lock}), place)
    assert helps(built)[0].endswith("shout 1s")
    assert re.match(r"It was built with versions that npm chose now, as it could not install its lock's: .*ms@2\.99\.99", built.notes[0])
    assert re.match(
        r"It is locked by yarn\.lock.* and none is taken from that lock, because npm could not install.*ms@2\.99\.99", built.notes[1]
    )


@pytest.mark.parametrize(
    "build",
    [
        "pnpm run made -- cli.js && yarn run copy",
        # What is understood of both is shown in tests/making/node_projects/test_as_npm.py.
        *(
            pytest.param(build, marks=pytest.mark.long)
            for build in (
                "pnpm run made -- cli.js && pnpm copy && pnpm install",
                "yarn && yarn --silent made cli.js && yarn run copy",
                "pnpm --dir more copied",
                "pnpm exec cp cli.js dist.js && mkdir dist && yarn exec cp dist.js dist/cli.js",
            )
        ),
    ],
)
async def test_scripts_that_are_run_by_pnpm_or_yarn_are_run_by_npm(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place, build: str
) -> None:
    scripts: JsonValue = {"build": build, "made": MADE, "copy": "cp cli.js dist/cli.js"}
    more: JsonValue = {"scripts": {"copied": "mkdir -p ../dist && cp ../cli.js ../dist/cli.js"}}
    package: dict[str, JsonValue] = {**PACKAGE, "bin": {"shout": "dist/cli.js"}, "scripts": scripts}
    files: dict[str, JsonValue] = {"package.json": package, "cli.js": CLI, "more/package.json": more}
    built = await built_of(programs, written(tmp_path / "origin", files), place)
    assert helps(built)[0].endswith("shout 1s")
    assert not any("ended with a failure" in note for note in built.notes)


async def test_what_of_pnpm_is_not_understood_is_why_a_build_fails(tmp_path: Path, programs: NodeProgramBuilder, place: Place) -> None:
    package: dict[str, JsonValue] = {**PACKAGE, "bin": {"shout": "dist/cli.js"}, "scripts": {"build": "pnpm --filter 'shout...' made"}}
    with pytest.raises(BuildFailed, match=r"cannot be built: pnpm error: the filter 'shout\.\.\.' is not understood"):
        await built_of(programs, written(tmp_path / "origin", {"package.json": package, "cli.js": CLI}), place)


async def test_why_a_build_fails_is_told_also_where_it_is_on_the_next_line(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place
) -> None:
    said = "printf '\\033[31merror during build:\\033[0m\\nThere is no x.\\n' >&2; exit 1"
    package: dict[str, JsonValue] = {**PACKAGE, "bin": {"shout": "dist/cli.js"}, "scripts": {"build": said}}
    with pytest.raises(BuildFailed, match=r"shout cannot be built: error during build: There is no x\."):
        await built_of(programs, written(tmp_path / "origin", {"package.json": package}), place)


async def test_typescript_that_no_script_builds_is_bundled_by_bun(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place, sandbox: Sandboxing
) -> None:
    """A substitute for Bun, which copies."""
    bun = tmp_path / "any.exe"
    bun.write_text('#!/bin/sh\nmkdir -p dist && cp "$2" "${5#--outfile=}"\n')
    bun.chmod(0o755)
    sandbox.environments.programs = replace(sandbox.environments.programs, bun=Program(bun))
    text = 'import ms from "ms";\nif (process.argv.includes("--help")) console.log(`shout ${ms(1000)}`);'
    package: dict[str, JsonValue] = {**PACKAGE, "bin": "cli.ts"}
    built = await built_of(programs, written(tmp_path / "origin", {"package.json": package, "cli.ts": text}), place)
    assert helps(built)[0].endswith("shout 1s")


ATTACKS = {
    "its folder is a link": "cd / && mv {work}/source {work}/moved && ln -s /etc {work}/source",
    "the place of the lock is a link": "ln -s /etc {work}/locking",
    "the place of the archive is a link": "ln -s /etc {work}/packed",
    "another archive is there": "mkdir {work}/packed && mkfifo {work}/packed/shout-1.0.0.tgz",
    "its settings are a folder": "mkdir .npmrc {work}/.npmrc",
}


SHORT = ("its folder is a link", "another archive is there")
"""Each is a whole build."""


@pytest.mark.parametrize("attack", [pytest.param(attack, marks=() if attack in SHORT else pytest.mark.long) for attack in ATTACKS])
async def test_a_build_that_puts_something_in_the_place_of_folders_makes_no_tool(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place, attack: str
) -> None:
    package: dict[str, JsonValue] = {
        **PACKAGE,
        "bin": {"shout": "dist/cli.js"},
        "scripts": {"build": f"mkdir dist && cp cli.js dist; {ATTACKS[attack]}"},
    }
    text = json.dumps(package).replace("{work}", str(place.work))
    with pytest.raises(BuildFailed):
        await built_of(programs, written(tmp_path / "origin", {"package.json": text, "cli.js": CLI}), place)
    assert not place.work.exists()


async def test_settings_of_npm_that_a_project_or_its_build_leaves_count_for_nothing(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place
) -> None:
    """They name an index that does not exist."""
    settings = "registry=http://127.0.0.1:9/\\n@x:registry=http://127.0.0.1:9/\\nfetch-retries=0\\n"
    build = f"mkdir dist && cp cli.js dist && printf '{settings}' | tee $HOME/.npmrc > .npmrc"
    package: dict[str, JsonValue] = {**PACKAGE, "bin": {"shout": "dist/cli.js"}, "scripts": {"build": build}}
    files: dict[str, JsonValue] = {"package.json": package, "cli.js": CLI, ".npmrc": settings.replace("\\n", "\n")}
    built = await built_of(programs, written(tmp_path / "origin", files), place)
    assert helps(built)[0].endswith("shout 1s")


async def test_programs_become_tools_and_those_whose_names_or_files_are_none_are_left_out(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place
) -> None:
    bins: JsonValue = {"shout": "cli.js", "*/ evil(); /*": "cli.js", "gone": "gone.js"}
    package: dict[str, JsonValue] = {**PACKAGE, "type": "module", "bin": bins}
    text = 'import ms from "ms";\nif (process.argv.includes("--help")) console.log(`shout ${ms(1000)}`);'
    built = await built_of(programs, written(tmp_path / "origin", {"package.json": package, "cli.js": text}), place)
    assert [entry.manifest.tool_id for entry in built.candidate.entries] == ["notes"]
    assert helps(built)[0].endswith("shout 1s")
    assert (place.folder / "package/cli.js").is_file()
    assert "node_modules/ms" in (place.folder / "package-lock.json").read_text()
    assert [one.operation for one in built.left_out] == ["*/ evil(); /*", "gone"]


async def test_what_a_project_is_developed_with_and_cannot_be_had_is_left_out(
    tmp_path: Path, programs: NodeProgramBuilder, place: Place
) -> None:
    package: dict[str, JsonValue] = {
        **PACKAGE, "bin": {"shout": "dist/cli.js"}, "scripts": {"build": "mkdir dist && cp cli.js dist"},
        "devDependencies": {"left-pad": "99.99.99"},
    }  # fmt: skip
    built = await built_of(programs, written(tmp_path / "origin", {"package.json": package, "cli.js": CLI}), place)
    assert helps(built)[0].endswith("shout 1s")
    assert "left-pad, which it is developed with" in built.notes[0]


async def test_what_depends_on_an_address_elsewhere_is_left_out_too(tmp_path: Path, runs: NpmRuns) -> None:
    package: JsonValue = {**PACKAGE, "devDependencies": {"@x/testing": "1.0.0"}}
    elsewhere = "https://elsewhere.test/a/tarball/v1"
    packages: JsonValue = {
        "": package,
        "node_modules/@x/testing": {"version": "1.0.0", "dev": True, "dependencies": {"a": elsewhere}},
        "node_modules/a": {"version": "1.0.0", "resolved": elsewhere, "dev": True},
        "node_modules/ms": {"version": "2.1.3"},
    }
    lock: JsonValue = {"name": "shout", "version": "1.0.0", "lockfileVersion": 3, "packages": packages}
    work = tmp_path / "state/work"
    folder = written(work / "source", {"package.json": package, "package-lock.json": lock})
    for place in (work, folder, *folder.iterdir()):
        place.chmod(0o777)
    installed = await runs.install(work, folder, "It cannot be installed", is_exact=True)
    assert "@x/testing, which it is developed with" in installed.workarounds[0]
    assert (folder / "node_modules/ms/package.json").is_file()
