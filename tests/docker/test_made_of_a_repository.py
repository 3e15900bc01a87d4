"""A repository with a Dockerfile becomes tools without a model."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import uv

from engine.making.building.builder import ModellessBuilder
from engine.making.building.builds import Job, Place
from engine.making.inspection import inspect
from engine.making.openapi.tools import Described
from engine.making.python_projects.preparing import PythonProjects
from engine.making.repositories.trees import Tree
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.runs import UvRuns
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.indexes import Installer
from engine.runtimes.environments.programs import Programs
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.local.boxed_runs import LocalSettings
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.processes import Launcher
from tests.docker.conftest import containers_of, request_of, silent
from tests.parts import machine_indexes, sandboxing
from toolagent.contracts.sources import DockerSource
from toolagent.contracts.task_specs import GithubDeploy
from toolagent_service.contracts.plans import DockerBuild
from toolagent_service.making.planning import ways

FILES = {
    "Dockerfile": 'FROM agent-sandbox:latest\nARG PORT=8080\nCOPY serve.py /serve.py\nEXPOSE ${PORT}\nCMD ["python3", "/serve.py"]\n',
    "serve.py": """
        import json
        from http.server import BaseHTTPRequestHandler, HTTPServer
        from urllib.parse import urlsplit, parse_qs

        ANSWER = {"200": {"content": {"application/json": {"schema": {"type": "object"}}}}}
        DOUBLE = {"parameters": [{"name": "n", "in": "query", "schema": {"type": "integer"}}], "responses": ANSWER}

        class Served(BaseHTTPRequestHandler):
            def do_GET(self):
                url = urlsplit(self.path)
                known = {
                    "/openapi.json": lambda: {"openapi": "3.0.3", "info": {"title": "Doubler"}, "paths": {"/double": {"get": DOUBLE}}},
                    "/double": lambda: {"twice": 2 * int(parse_qs(url.query)["n"][0])},
                }
                self.send_response(200 if url.path in known else 404)
                self.end_headers()
                self.wfile.write(json.dumps(known[url.path]() if url.path in known else None).encode())

        HTTPServer(("0.0.0.0", 8080), Served).serve_forever()
    """,
}


async def test_a_dockerfile_becomes_a_tool_that_answers(
    tmp_path: Path, make_runtime: Callable[..., DockerRuntime], settings: DockerSettings, engine: Engine, http: HttpExchange
) -> None:
    repository, data = tmp_path / "repository", tmp_path / "data"
    repository.mkdir()
    for name, text in FILES.items():
        (repository / name).write_text(textwrap.dedent(text))
    (way, *_) = ways(GithubDeploy(repo_url="https://example.com/a/b", tool_name="doubler"), inspect(Tree.read(repository))).plans
    assert isinstance(way, DockerBuild)
    assert (way.dockerfile, way.port) == ("Dockerfile", 8080)
    runtime = make_runtime(data=data)
    place = Place(data / "tools" / "doubler", "tools/doubler", tmp_path / "work")
    with Guardian(settings.owner) as guardian:
        launcher = Launcher(settings.owner, guardian, {"PATH": "/usr/bin:/bin"})
        sandbox = sandboxing(settings.state, launcher, tmp_path / "environments")
        programs = Programs.found(Path(uv.find_uv_bin()))
        runs = UvRuns(Executor(launcher, sandbox.sandbox), programs, Installer(machine_indexes(programs)))
        local = LocalRuntime(LocalSettings(data, settings.state, settings.state / "calls"), launcher, sandbox, http)
        built = await ModellessBuilder(PythonProjects(runs, ProjectLocks(runs), sandbox.environments), local, runtime).docker(
            way, Job(repository, Described("doubler"), place, silent)
        )
    assert await containers_of(engine, settings) == []
    (entry,) = built.candidate.entries
    source = entry.sources[0]
    assert isinstance(source, DockerSource)
    assert built.folders == {"doubler": place.folder}
    running = await runtime.start(entry.manifest, source, silent)
    assert await runtime.call(running, source, request_of(n=21)) == {"twice": 42}
    await runtime.stop(running)
