"""The package index variables of builds."""

from pathlib import Path

import pytest
import uv

from engine.runtimes.docker.building.index_variables import index_variables
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.environments.indexes import Index
from engine.runtimes.environments.programs import Programs
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from tests.parts import container_parts
from toolagent.contracts.sources import ScriptLanguage
from workers.host.scripts import indexes_of
from workers.settings.environment import environment


def test_pip_is_told_what_uv_is_told() -> None:
    index = Index((), {"UV_DEFAULT_INDEX": "own=https://own.invalid/a?b=c", "UV_INDEX": "x=https://x.invalid/ https://y.invalid/"})
    assert index_variables(index) == {
        **index.variables,
        "PIP_INDEX_URL": "https://own.invalid/a?b=c",
        "PIP_EXTRA_INDEX_URL": "https://x.invalid/ https://y.invalid/",
    }


def test_nobody_is_told_a_password() -> None:
    variables = {"UV_INDEX_URL": "https://me:secret@own.invalid/", "npm_config_registry": "https://npm.invalid/"}
    assert index_variables(Index((), variables)) == {"npm_config_registry": "https://npm.invalid/"}


async def test_one_language_whose_index_is_unknown_does_not_hide_the_other(settings: DockerSettings, engine: Engine) -> None:
    async def indexes(language: ScriptLanguage) -> Index:
        if language is ScriptLanguage.PYTHON:
            raise IndexesUnknown("uv is nowhere")
        return Index(("npm.invalid",), {"npm_config_registry": "https://npm.invalid/"})

    parts = container_parts(settings, engine, indexes=indexes)
    assert await parts.known_index() == Index(("npm.invalid",), {"npm_config_registry": "https://npm.invalid/"})


async def test_a_host_asks_both_languages_as_scripts_do(
    settings: DockerSettings, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody is asked: no index of these is there, and the installers would try for a minute.
    (tmp_path / ".npmrc").write_text("fetch-retries=0\nregistry=http://npm.invalid:81/\n")
    (tmp_path / ".config/uv").mkdir(parents=True)
    (tmp_path / ".config/uv/uv.toml").write_text('[[index]]\nurl = "https://file.invalid/simple"\n')
    for name in ("UV_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE", "npm_config_registry", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / ".config"),
        "UV_DEFAULT_INDEX": "https://own.invalid/simple",
        "UV_EXTRA_INDEX_URL": "https://extra.invalid/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_OFFLINE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    parts = DockerParts(settings, engine, Egress(settings.state), indexes_of(Programs.found(Path(uv.find_uv_bin())), environment()))
    index = await parts.known_index()
    assert {"own.invalid", "extra.invalid", "npm.invalid:81"} <= set(index.hosts)
    assert index.variables["UV_EXTRA_INDEX_URL"] == "https://extra.invalid/simple"
    assert index.variables["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert index.variables["npm_config_registry"] == "http://npm.invalid:81/"
