"""The findings of the recognisers in repositories."""

import json
import os
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.making import recognisers
from engine.making.inspection import inspect
from engine.making.recognisers import RECOGNISERS
from engine.making.repositories.addresses import CloneFailed
from engine.making.repositories.part_of_task import meant_in
from engine.making.repositories.trees import Tree
from tests.making.inspection.recognised import found, only
from toolagent.contracts.making import FindingKind

FASTAPI = "from fastapi import FastAPI\n\napp = FastAPI()\n"
SERVERS: JsonValue = [{"url": "https://example.com"}]
DOCUMENT: dict[str, JsonValue] = {
    "openapi": "3.1.0",
    "info": {"title": "T", "version": "1"},
    "paths": {"/x": {"get": {"responses": {"200": {}}}}},
}


def apps(folder: Path, files: Mapping[str, str], kind: FindingKind = FindingKind.ASGI) -> list[tuple[JsonValue, ...]]:
    names = ("root", "module", "attribute", "is_factory", "framework")
    return [tuple(one.details[name] for name in names) for one in found(folder, files) if one.kind is kind]


def test_each_kind_of_finding_has_a_recogniser_and_each_module_is_one() -> None:
    assert set(RECOGNISERS) == set(FindingKind)
    modules = {path.stem for path in Path(str(recognisers.__file__)).parent.glob("*.py")} - {"__init__", "recogniser"}
    assert modules == {recognise.__module__.rpartition(".")[2] for recognise in RECOGNISERS.values()}


@pytest.mark.parametrize(
    ("files", "app"),
    [
        ({"main.py": FASTAPI}, ("", "main", "app", False, "fastapi")),
        ({"src/tool/__init__.py": "", "src/tool/api.py": FASTAPI}, ("src", "tool.api", "app", False, "fastapi")),
        (
            {"backend/app/main.py": FASTAPI + "from app.models import X\n", "backend/app/models.py": ""},
            ("backend", "app.main", "app", False, "fastapi"),
        ),
        ({"app/main.py": FASTAPI + "from .models import X\n", "app/models.py": ""}, ("", "app.main", "app", False, "fastapi")),
        ({"web/__init__.py": FASTAPI}, ("", "web", "app", False, "fastapi")),
        ({"a.py": "import fastapi as f\napi: f.FastAPI = f.FastAPI(title='x')\n"}, ("", "a", "api", False, "fastapi")),
        ({"a.py": "from starlette.applications import Starlette as S\nif True:\n    app = S()\n"}, ("", "a", "app", False, "starlette")),
        ({"a.py": "from quart import Quart\napp = Quart(__name__)\n"}, ("", "a", "app", False, "quart")),
    ],
)
def test_an_app_is_found_by_reading_its_module(tmp_path: Path, files: dict[str, str], app: tuple[JsonValue, ...]) -> None:
    assert apps(tmp_path, {**files, "requirements.txt": "fastapi\n"}) == [app]


def test_a_factory_is_found_and_an_app_that_it_made_goes_first(tmp_path: Path) -> None:
    factory = """
        from fastapi import FastAPI

        def create_app(debug: bool = False) -> FastAPI:
            made = FastAPI(debug=debug)
            return made

        def with_settings(settings):
            return FastAPI()
    """
    assert apps(tmp_path, {"web.py": factory}) == [("", "web", "create_app", True, "fastapi")]
    assert apps(tmp_path, {"web.py": textwrap.dedent(factory) + "\napp = create_app()\n"})[0] == ("", "web", "app", False, "fastapi")


def test_what_only_looks_like_an_app_is_none(tmp_path: Path) -> None:
    files = {
        "a.py": "class FastAPI: ...\napp = FastAPI()\n",
        "b.py": "from fastapi import FastAPI\nif __name__ == '__main__':\n    app = FastAPI()\n",
        "c.py": "# app = FastAPI()\n",
        "d.py": "from fastapi import FastAPI\ndef f():\n    app = FastAPI()\n",
        "not-a-module.py": FASTAPI,
    }
    assert apps(tmp_path, files) == []


def test_the_app_of_the_project_goes_before_those_of_its_tests_and_examples(tmp_path: Path) -> None:
    files = {
        "tests/app.py": FASTAPI,
        "examples/main.py": FASTAPI,
        "package/__init__.py": "",
        "package/deep/__init__.py": "",
        "package/deep/web.py": FASTAPI,
    }
    assert apps(tmp_path, {**files, "pyproject.toml": "[project]\nname='x'\nversion='1'\n"})[0][1] == "package.deep.web"


def test_an_app_without_a_file_that_says_what_it_needs_has_no_project(tmp_path: Path) -> None:
    assert "project" not in only(found(tmp_path, {"main.py": FASTAPI}), FindingKind.ASGI).details
    assert only(found(tmp_path, {"pyproject.toml": "[tool.poetry]\nname='x'\n"}), FindingKind.ASGI).details["project"] == ""


def test_the_ports_of_the_last_stage_are_those_that_an_image_serves(tmp_path: Path) -> None:
    text = "FROM a AS b\nEXPOSE 1\nFROM c\nARG P=80\nENV Q 90\nEXPOSE ${P} $Q/tcp 53/udp ${R:-70} $S 99999\n"
    assert only(found(tmp_path, {"Dockerfile": text}), FindingKind.DOCKERFILE).details == {"ports": [80, 90, 70]}


def test_a_dockerfile_that_would_be_refused_says_so(tmp_path: Path) -> None:
    assert "refused" in only(found(tmp_path, {"Dockerfile": "FROM a\nADD https://example.com/x /x\n"}), FindingKind.DOCKERFILE).details


def test_all_that_a_tool_file_lacks_is_said_at_once(tmp_path: Path) -> None:
    said = only(found(tmp_path, {"x.tool.json": '{"description": "x", "version": "1.0.0"}'}), FindingKind.TOOL_FILE).summary
    assert [field for field in ("toolId", "displayName", "handler") if f"$.{field}: This is required." in said] == [
        "toolId",
        "displayName",
        "handler",
    ]


def test_a_tool_file_is_usable_with_its_script_beside_it_only(tmp_path: Path) -> None:
    file = {
        "toolId": "custom:x", "displayName": "X", "description": "x", "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": "x.py", "language": "python"},
    }  # fmt: skip
    assert "faults" in only(found(tmp_path, {"tools/x.tool.json": json.dumps(file)}), FindingKind.TOOL_FILE).details
    details = only(found(tmp_path, {"tools/x.py": "print(1)"}), FindingKind.TOOL_FILE).details
    assert details == {"tool_id": "custom:x", "version": "1.0.0", "script": "tools/x.py"}


def test_console_scripts_and_mcp_servers_are_recorded(tmp_path: Path) -> None:
    project = "[project]\nname='x'\nversion='1'\ndependencies=['MCP[cli]>=1']\n[project.scripts]\nx = 'x:main'\n"
    findings = found(tmp_path, {"pyproject.toml": project})
    assert only(findings, FindingKind.CONSOLE_SCRIPT).details == {"scripts": {"x": "x:main"}, "language": "python"}
    server = {"language": "python", "project": "", "programs": ["x"], "arguments": []}
    assert only(findings, FindingKind.MCP_SERVER).details == server
    findings = found(tmp_path, {"s.py": "from mcp.server.fastmcp import FastMCP\n", "README.md": README})
    assert only(findings, FindingKind.MCP_SERVER).details == {**server, "module": "s.py", "arguments": ["serve", "--stdio"]}


README = """
    {"mcpServers": {"x": {"command": "uvx", "args": ["--from", "x", "x", "serve", "--stdio"]}}}
"""


def test_programs_are_found_where_older_projects_and_npm_name_them(tmp_path: Path) -> None:
    entry = "[project]\nname='e'\nversion='1'\n[project.entry-points.console_scripts]\ne = 'e.cli:main'\n"
    assert only(found(tmp_path / "entry", {"pyproject.toml": entry}), FindingKind.CONSOLE_SCRIPT).details["scripts"] == {"e": "e.cli:main"}
    cfg = "[options.entry_points]\nconsole_scripts =\n    a = a.cli:main\n"
    assert only(found(tmp_path / "cfg", {"setup.cfg": cfg}), FindingKind.CONSOLE_SCRIPT).details["scripts"] == {"a": "a.cli:main"}
    setup = "setup(entry_points={'console_scripts': ['b = b.cli:main']})\n"
    assert only(found(tmp_path / "py", {"setup.py": setup}), FindingKind.CONSOLE_SCRIPT).details["scripts"] == {"b": "b.cli:main"}
    package = json.dumps({"name": "@scope/c", "bin": "./cli.js"})
    npm = only(found(tmp_path / "npm", {"package.json": package}), FindingKind.CONSOLE_SCRIPT).details
    assert npm == {"scripts": {"c": "./cli.js"}, "language": "nodejs"}
    files = "setup(scripts=['bin/c'], entry_points={'console_scripts': ['b = b.cli:main']})\n"
    told = only(found(tmp_path / "files", {"setup.py": files}), FindingKind.CONSOLE_SCRIPT).details["scripts"]
    assert told == {"c": "bin/c", "b": "b.cli:main"}
    listed = "[project]\nname='f'\nversion='1'\n[tool.setuptools]\nscript-files=['tools/f.py', 'a b']\n"
    told = only(found(tmp_path / "listed", {"pyproject.toml": listed}), FindingKind.CONSOLE_SCRIPT).details["scripts"]
    assert told == {"f.py": "tools/f.py"}


SCRIPT = "import argparse\nparser = argparse.ArgumentParser()\nasked = parser.parse_args()\n"


def test_scripts_with_a_parser_are_programs_where_nothing_installs_any(tmp_path: Path) -> None:
    files = {"one/a.py": SCRIPT, "two/b.py": SCRIPT, "two/c.py": SCRIPT, "two/d.py": "import argparse\n", "tests/e.py": SCRIPT}
    scripts = [one for one in found(tmp_path / "loose", files) if one.kind is FindingKind.CONSOLE_SCRIPT]
    assert [one.details["scripts"] for one in scripts] == [{"b": "b.py", "c": "c.py"}, {"a": "a.py"}]
    assert all(one.details["are_files"] is True for one in scripts)
    for name in ("pyproject.toml", "Cargo.toml", "go.mod", "build.gradle.kts", "composer.json", "Gemfile"):
        project = found(tmp_path / name, {**files, name: "[project]\nname = 'x'\n"})
        assert not [one for one in project if one.kind is FindingKind.CONSOLE_SCRIPT]


@pytest.mark.parametrize("name", ["openapi.json", "docs/api.yaml"])
def test_a_document_is_found_in_json_and_yaml(tmp_path: Path, name: str) -> None:
    # JSON is YAML.
    details = only(found(tmp_path, {name: json.dumps(DOCUMENT | {"servers": SERVERS})}), FindingKind.OPENAPI).details
    assert details == {"version": "3.1.0", "title": "T", "operations": 1, "server_url": "https://example.com"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"servers": []}, "no server by an absolute address"),
        ({"servers": [{"url": "/api"}]}, "no server by an absolute address"),
        ({"servers": [{"url": "https://user:hunter2@example.com/"}]}, "securitySchemes"),
        ({"servers": SERVERS, "paths": {}}, "no operation"),
        ({"servers": SERVERS, "paths": {"/x": {"get": {"parameters": [{"$ref": "https://example.com/p.json"}]}}}}, "another document"),
    ],
)
def test_why_a_document_alone_makes_no_tools_is_said(tmp_path: Path, changes: dict[str, JsonValue], told: str) -> None:
    fault = str(only(found(tmp_path, {"openapi.json": json.dumps(DOCUMENT | changes)}), FindingKind.OPENAPI).details.get("fault"))
    assert (told in fault, "hunter2" in fault) == (True, False), fault


def test_a_document_that_is_large_is_read_elsewhere_and_none_is_passed_over_in_silence(tmp_path: Path) -> None:
    text = json.dumps(DOCUMENT | {"x-more": "y" * (1 << 20)})
    assert only(found(tmp_path, {"docs/interface.json": text}), FindingKind.OPENAPI).details == {"unread": True}
    with (tmp_path / "docs/openapi.json").open("wb") as file:
        file.truncate(33 << 20)
    refused = [one.details.get("refused") for one in inspect(Tree.read(tmp_path)).findings if one.path == "docs/openapi.json"]
    assert "larger than 32 MiB" in str(refused)


def test_swagger_2_is_recognised_and_what_has_no_operation_comes_last(tmp_path: Path) -> None:
    swagger = 'swagger: "2.0"\nhost: example.com\npaths: {/x: {get: {responses: {200: {description: x}}}}}\n'
    files = {f"a/{number}.yaml": 'swagger: "2.0"\npaths: {}\n' for number in range(12)}
    findings = [one for one in found(tmp_path, {**files, "z/deep/old.yaml": swagger}) if one.kind is FindingKind.OPENAPI]
    assert findings[0].details == {"version": "2.0", "title": "untitled", "operations": 1, "server_url": "https://example.com"}
    assert {str(one.details["fault"]) for one in findings[1:]} == {"It describes no operation."}


def test_other_json_and_yaml_is_no_document(tmp_path: Path) -> None:
    assert found(tmp_path, {"a.json": '{"openapi": {"x": 1}}', "b.yml": "name: openapi\n", "c.json": "[]"}) == ()


def test_findings_come_in_the_order_of_preference(tmp_path: Path) -> None:
    files = {"Dockerfile": "FROM a\nEXPOSE 1\n", "main.py": FASTAPI, "openapi.json": json.dumps(DOCUMENT), "requirements.txt": "fastapi\n"}
    assert [one.kind for one in found(tmp_path, files)] == [FindingKind.ASGI, FindingKind.OPENAPI, FindingKind.DOCKERFILE]


def test_the_readme_and_the_code_are_counted(tmp_path: Path) -> None:
    found(tmp_path, {"README.md": "Hello", "a.rs": "", "b.txt": "12", "node_modules/c.js": ""})
    inspection = inspect(Tree.read(tmp_path))
    assert (inspection.readme, inspection.code_files, inspection.files, inspection.size) == ("Hello", 1, 3, 7)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(9)
)
HOSTILE: dict[str, str | bytes] = {
    "bomb/openapi.yaml": "openapi: 3.0.0\n" + BOMB,
    "circle/openapi.yaml": "openapi: 3.0.0\npaths: &p\n  /x: *p\n",
    "deep/openapi.yaml": "openapi: 3.0.0\npaths: " + "[" * 50_000,
    "deep/openapi.json": '{"openapi": "3.0.0", "paths": ' + "[" * 100_000,
    "nan/openapi.json": '{"openapi": "3.0.0", "paths": {"/x": NaN}}',
    "refs/openapi.json": '{"openapi": "3.0.0", "paths": {"/x": {"$ref": "#/paths/~1x"}}}',
    "types/openapi.json": '{"openapi": "3.0.0", "info": [], "servers": 3, "paths": {"/x": {"get": {"parameters": [1, {}]}}}}',
    "deep.py": "from fastapi import FastAPI\napp = " + "(" * 10_000,
    "deep2.py": "from fastapi import FastAPI\nx = 1" + "+1" * 100_000,
    "nul.py": "FastAPI\0",
    "latin.py": "app = FastAPI()  # \xe9".encode("latin-1"),
    "pyproject.toml": "x = " + "[" * 10_000,
    "package.json": "[" * 100_000,
    "Dockerfile": b"FROM \xff\xfe",
    "x.tool.json": "[" * 50_000,
    "y.tool.json": "\0",
    "large.py": "FastAPI" * 200_000,
}


def test_hostile_files_are_passed_over(tmp_path: Path) -> None:
    for name, content in HOSTILE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    findings = inspect(Tree.read(tmp_path)).findings
    unusable = {"refused", "faults"}
    assert {one.path for one in findings if not unusable & one.details.keys()} == {"types/openapi.json", "refs/openapi.json"}


def test_links_pipes_and_deep_folders_are_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (outside / "main.py").write_text(FASTAPI)
    folder.mkdir()
    (folder / "link.py").symlink_to(outside / "main.py")
    (folder / "linked").symlink_to(outside)
    (folder / "circle").symlink_to(folder)
    os.mkfifo(folder / "pipe.py")
    deep = folder
    for _ in range(60):
        deep = deep / "d"
        deep.mkdir()
    (deep / "main.py").write_text(FASTAPI)
    inspection = inspect(Tree.read(folder))
    assert (inspection.findings, inspection.files, inspection.is_whole) == ((), 0, False)


FLASK = "from flask import Flask\n\napp = Flask(__name__)\n"
FACTORY = "from flask import Flask\n\ndef create_app(mode):\n    made = Flask(__name__)\n    return made\n"


@pytest.mark.parametrize(
    ("files", "app"),
    [
        ({"app.py": FLASK}, ("", "app", "app", False, "flask")),
        ({"a.py": "import bottle\napplication = bottle.Bottle()\n"}, ("", "a", "application", False, "bottle")),
        ({"a.py": "from apiflask import APIFlask\napp = APIFlask(__name__)\n"}, ("", "a", "app", False, "apiflask")),
        ({"a.py": "import falcon\napp = falcon.App()\n"}, ("", "a", "app", False, "falcon")),
        ({"web.py": FACTORY.replace("mode", "")}, ("", "web", "create_app", True, "flask")),
        ({"web.py": FACTORY, "wsgi.py": "from web import create_app\n\napp = create_app('x')\n"}, ("", "wsgi", "app", False, "flask")),
        (
            {"pkg/__init__.py": FACTORY, "pkg/run.py": "from . import create_app as make\napplication = make('x')\n"},
            ("", "pkg.run", "application", False, "flask"),
        ),
    ],
)
def test_a_wsgi_app_is_found_by_reading_its_module(tmp_path: Path, files: dict[str, str], app: tuple[JsonValue, ...]) -> None:
    assert apps(tmp_path, {**files, "requirements.txt": "flask\n"}, FindingKind.WSGI) == [app]


def test_a_factory_that_needs_arguments_and_is_called_nowhere_is_no_app(tmp_path: Path) -> None:
    assert apps(tmp_path, {"web.py": FACTORY}, FindingKind.WSGI) == []


@pytest.mark.parametrize("kind", [FindingKind.ASGI, FindingKind.WSGI, FindingKind.GRADIO])
def test_what_tries_a_repository_is_none_of_its_apps(tmp_path: Path, kind: FindingKind) -> None:
    demo = "import gradio as gr\ngr.Interface(len, 'text', 'number').launch()\n"
    files = {"tests/app.py": FASTAPI, "tests/web.py": FLASK, "test/ui.py": demo, "requirements.txt": "flask\n"}
    assert apps(tmp_path, files, kind) == []


def test_of_a_gradio_app_the_module_is_found_that_launches_it(tmp_path: Path) -> None:
    files = {
        "ui.py": "import gradio as gr\n\ndef build():\n    with gr.Blocks() as demo:\n        gr.Textbox()\n    return demo\n",
        "main.py": "from ui import build\n\nif __name__ == '__main__':\n    build().launch(share=True)\n",
        "rocket.py": "# gradio is not used here\nimport rockets\nrockets.launch()\n",
    }
    assert [one[1] for one in apps(tmp_path, files, FindingKind.GRADIO)] == ["main"]
    (tmp_path / "main.py").unlink()
    assert [one[1] for one in apps(tmp_path, {}, FindingKind.GRADIO)] == ["ui"]


@pytest.mark.parametrize(
    ("package", "files", "starts"),
    [
        ({"scripts": {"start": "node dist/main.js"}}, {}, []),
        ({"main": "x.js"}, {"src/app.js": "express()"}, ["src/app.js"]),
        ({"main": "x.js"}, {"src/app.js": "no server"}, None),
        ({"bin": {"a": "cli.js"}}, {"server.js": "app.listen(1)"}, None),
        ({"bin": {"a": "cli.js"}, "scripts": {"start": "node server.js"}}, {"server.js": "app.listen(1)"}, ["server.js"]),
    ],
)
def test_an_app_of_node_is_what_something_starts(
    tmp_path: Path, package: dict[str, JsonValue], files: Mapping[str, str], starts: list[str] | None
) -> None:
    manifest = json.dumps({**package, "dependencies": {"express": "4"}})
    apps = [one for one in found(tmp_path, {"package.json": manifest, **files}) if one.kind is FindingKind.NODE_APP]
    assert [one.details["starts"] for one in apps] == ([] if starts is None else [starts])


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", '{"dependencies": 3, "scripts": []}', '{"dependencies": {"express": "4"}, "scripts": {"start": 3}}']
)
def test_a_manifest_that_attacks_is_no_app(tmp_path: Path, text: str) -> None:
    assert not [one for one in found(tmp_path, {"package.json": text}) if one.kind is FindingKind.NODE_APP]


def test_of_documents_side_by_side_the_one_that_is_called_so_goes_first(tmp_path: Path) -> None:
    text = '{"openapi": "3.0.3", "info": {"title": "T"}, "servers": [{"url": "https://example.com"}], "paths": {"/x": {"get": {}}}}'
    findings = found(tmp_path / "x", {"openapi-raw.json": text, "openapi.json": text})
    assert [one.path for one in findings if one.kind is FindingKind.OPENAPI] == ["openapi.json", "openapi-raw.json"]


def test_a_task_may_mean_a_folder_or_a_file_of_a_repository_and_nothing_else(tmp_path: Path) -> None:
    for name in ("specs/a.json", "specs/b.json"):
        (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "clone" / name).write_text('{"openapi": "3.0.3", "info": {"title": "T"}, "paths": {"/x": {"get": {}}}}')
    (tmp_path / "clone/out").symlink_to(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    clone = tmp_path / "clone"
    assert [one.path for one in inspect(meant_in(clone, "specs").tree()).findings] == ["a.json", "b.json"]
    assert [one.path for one in inspect(meant_in(clone, "specs/b.json").tree()).findings] == ["b.json"]
    for path in ("other", "out/other.json", "out", "../other.json"):
        with pytest.raises(CloneFailed, match=r"no folder and no file .* Folders at its top: out, specs\."):
            meant_in(clone, path)


def test_what_cannot_be_on_a_disk_is_no_path_of_a_repository(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")
    for path in ("a", "\0", "x" * 300):
        with pytest.raises(CloneFailed, match="no folder and no file"):
            meant_in(tmp_path, path)
    with pytest.raises(CloneFailed, match="is gone from this host"):
        meant_in(tmp_path / "gone", "x")


def test_text_that_is_made_to_harm_one_recogniser_leaves_the_others(tmp_path: Path) -> None:
    files = {
        "package.json": '{"name": "x", "dependencies": {"@modelcontextprotocol/sdk": "1"}}',
        "app.py": FASTAPI,
        "requirements.txt": "fastapi",
    }
    files["README.md"] = f'"args": {"[" * 1_990}]'
    assert {one.kind for one in found(tmp_path, files)} >= {FindingKind.MCP_SERVER, FindingKind.ASGI}
    files["settings.py"] = "from pydantic_settings import BaseSettings\nclass S(BaseSettings):\n    x: a" + ".b" * 2_000 + "\n"
    assert FindingKind.ASGI in {one.kind for one in found(tmp_path / "deep", files)}
