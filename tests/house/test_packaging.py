"""Only `toolagent` is installed, and no other package has one of our root names."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import toolagent
from toolagent.extras import remedy_of

ROOT_NAMES = frozenset({"workflows", "activities", "api", "workers", "tool_agent", "engine", "data", "tests", "bench"})
HEAVY = ("temporalio", "httpx", "typer", "sqlalchemy")
IMPORT_EVERYTHING = """
import importlib, importlib.util, json, pkgutil, sys
names = ["toolagent.contracts", "toolagent.core"]
for name in tuple(names):
    package = importlib.import_module(name)
    names += [found.name for found in pkgutil.walk_packages(package.__path__, name + ".")]
for name in names:
    importlib.import_module(name)
print(json.dumps({"modules": names, "present": [name for name in sys.argv[1:] if importlib.util.find_spec(name)],
                  "origin": sys.modules["toolagent"].__file__}))
"""


def _top_level(distribution: metadata.Distribution) -> set[str]:
    """The names that this distribution makes importable."""
    listed = (distribution.read_text("top_level.txt") or "").split()
    paths = [file.as_posix() for file in distribution.files or ()]
    placed = {path.partition("/")[0].partition(".")[0] for path in paths if "/" in path or path.endswith((".py", ".so", ".pyd"))}
    return placed.union(listed)


def _collisions(distributions: Iterable[metadata.Distribution]) -> dict[str, set[str]]:
    return {found.name: names for found in distributions if (names := _top_level(found) & ROOT_NAMES)}


def _needed(requirement: str, extra: str = "") -> set[str]:
    """The distributions that a requirement, of that extra or of none, brings into an environment like ours, itself included."""
    wanted = Requirement(requirement)
    if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
        return set()
    return {wanted.name}.union(*(_needed(further) for further in metadata.requires(wanted.name) or ()))


def _place(name: str, site: Path) -> None:
    """Put an installed distribution into another environment, without a network or a cache."""
    for file in metadata.files(name) or ():
        source, target = Path(str(file.locate())), site / file
        if ".." not in file.parts and source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())


def test_the_root_is_an_application_and_never_installed(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["uv"]["package"] is False
    assert "build-system" not in project


def test_only_the_packages_can_be_built_and_one_of_them_is_nobody_elses(root: Path, files: tuple[Path, ...]) -> None:
    projects = [path for path in files if path.name == "pyproject.toml" and path.parts[0] not in {"data", "tests"}]
    buildable = [str(path.parent) for path in projects if "build-system" in tomllib.loads((root / path).read_text("utf-8"))]
    assert buildable == ["packages/service", "packages/toolagent"]
    service = tomllib.loads((root / "packages/service/pyproject.toml").read_text("utf-8"))
    assert "Private :: Do Not Upload" in service["project"]["classifiers"]
    assert [str(path) for path in files if path.name in {"setup.py", "setup.cfg"}] == []


def test_no_page_has_the_package_installed_by_its_name_which_is_another_one_s_on_pypi(root: Path, files: tuple[Path, ...]) -> None:
    pages = [path for path in files if path.parts[0] == "docs" and path.suffix in {".md", ".txt"} and "adr" not in path.parts]
    by_name = re.compile(r"(?<!packages/)toolagent\[|install toolagent")
    assert [str(path) for path in pages if by_name.search((root / path).read_text("utf-8"))] == []


def test_every_root_folder_of_python_is_guarded_against_collisions(files: tuple[Path, ...]) -> None:
    folders = {path.parts[0] for path in files if path.suffix == ".py" and len(path.parts) > 1}
    # `packages` holds what is installed, `docs/examples` projects of their own: neither is ever imported from the root.
    assert folders - ROOT_NAMES - {"packages", "docs"} == set()


def test_no_installed_distribution_takes_one_of_our_root_names() -> None:
    assert _collisions(metadata.distributions()) == {}


@pytest.mark.parametrize(
    ("file", "text"),
    [("RECORD", "workflows/__init__.py,,\nother/data.py,,\n"), ("RECORD", "workflows.py,,\n"), ("top_level.txt", "workflows\n")],
)
def test_a_distribution_that_takes_a_root_name_is_caught(tmp_path: Path, file: str, text: str) -> None:
    described = tmp_path / "intruder-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: intruder\nVersion: 1.0\n", "utf-8")
    (described / file).write_text(text, "utf-8")
    for name in ("workflows", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "workflows" / "__init__.py").touch()
    (tmp_path / "workflows.py").touch()
    (tmp_path / "other" / "data.py").touch()
    assert _collisions(metadata.distributions(path=[str(tmp_path)])) == {"intruder": {"workflows"}}


def test_the_environment_runs_the_package_of_this_tree(root: Path) -> None:
    # An editable install made before its sources were there is empty, and everything that imports the package fails.
    script = "import importlib.util as u; s = u.find_spec('toolagent'); print(s.origin if s else '')"
    found = subprocess.run([sys.executable, "-I", "-c", script], check=True, capture_output=True, text=True).stdout.strip()
    expected = root / "packages/toolagent/src/toolagent/__init__.py"
    remedy = "The editable install of toolagent is stale: remove .venv/.ready, then `make setup`."
    assert found, remedy
    assert Path(found).resolve() == expected, remedy


def test_the_package_offers_some_twenty_names_each_of_them_once_and_there() -> None:
    assert len(toolagent.__all__) <= 25
    assert {name for name in toolagent.__all__ if not hasattr(toolagent, name)} == set()
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = toolagent.Nothing  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportAttributeAccessIssue]


@pytest.mark.timeout(300)
def test_the_wheel_holds_only_the_package_and_works_with_its_own_requirements_alone(root: Path, tmp_path: Path) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    build = [uv, "build", "-q", "--wheel", "--offline", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([*build, "--out-dir", str(tmp_path / "dist"), str(root / "packages/toolagent")], check=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {(name.split("/")[0], Path(name).suffix) for name in names} == {("toolagent", ".py"), ("toolagent", ".typed")}
    assert wheel.stat().st_size < 400_000

    subprocess.run([uv, "venv", "-q", "--offline", "--python", sys.executable, str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv/bin/python")
    subprocess.run([uv, "pip", "install", "-q", "--offline", "--no-deps", "--python", python, str(wheel)], check=True)
    (site,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    (described,) = metadata.distributions(name="toolagent", path=[str(site)])
    requires = described.requires or ()
    for name in set[str]().union(*map(_needed, requires)):
        _place(name, site)

    ran = subprocess.run([python, "-I", "-c", IMPORT_EVERYTHING, *HEAVY], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert Path(report["origin"]).is_relative_to(tmp_path)
    assert "toolagent.contracts.calls" in report["modules"]
    assert report["present"] == []
    script = "import toolagent; toolagent.ToolCall; toolagent.ToolAgentHttp"
    asked = subprocess.run([python, "-I", "-c", script], check=False, capture_output=True, text=True)
    assert (
        'toolagent.ToolAgentHttp needs httpx. In a checkout of Tool Agent: pip install "packages/toolagent[http]".'
        in asked.stderr.splitlines()[-1]
    )

    command = [str(tmp_path / "venv/bin/toolagent"), "run", "--help"]
    bare = subprocess.run(command, check=False, capture_output=True, text=True, env={})
    assert (bare.returncode, bare.stderr) == (2, f"The command toolagent needs typer. {remedy_of('cli')}\n")
    servers = subprocess.run([python, "-I", "-m", "toolagent.testing.servers"], check=False, capture_output=True, text=True)
    assert (servers.returncode, servers.stderr) == (2, f"The servers for tests need httpx. {remedy_of('testing')}\n")
    for name in set[str]().union(*(_needed(requirement, "cli") for requirement in requires)):
        _place(name, site)
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env={}).stdout
    assert "Usage: toolagent run" in shown
    script = "import sys, toolagent.client.http; print(*(name.partition('.')[0] for name in sys.modules))"
    loaded = subprocess.run([python, "-I", "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert ROOT_NAMES & set(loaded) == set()
    assert "toolagent_service" not in loaded


def test_shipped_tools_of_one_kind_serve_with_the_same_lines(root: Path) -> None:
    """Each is a project that is copied alone, so each has its own copy."""
    tools = ("image_compress_api", "image_stitcher", "text_summarizer_api")
    assert len({(root / "data/tools/local" / tool / "server.py").read_bytes() for tool in tools}) == 1
