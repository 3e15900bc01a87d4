"""Installers in the sandbox use this machine's indexes, also those of files that the sandbox does not see."""

from pathlib import Path

import pytest
import uv

from engine.runtimes.environments.programs import Programs
from toolagent.contracts.sources import ScriptLanguage
from workers.host.scripts import indexes_of
from workers.settings.environment import environment


def variables_of(home: Path, **more: str) -> dict[str, str]:
    # Nobody is asked: no index of these is there, and the installers would try for a minute.
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "UV_OFFLINE": "1"}
    return {"PATH": environment()["PATH"], **own, **more}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config/uv").mkdir(parents=True)
    return tmp_path


async def test_what_uvs_settings_name_is_told_by_variables(home: Path) -> None:
    text = '[[index]]\nurl = "https://mine.invalid/simple"\n[[index]]\nurl = "https://user:pw@other.invalid/simple"\ndefault = true\n'
    (home / ".config/uv/uv.toml").write_text(text)
    programs = Programs.found(Path(uv.find_uv_bin()))
    index = await indexes_of(programs, variables_of(home))(ScriptLanguage.PYTHON)
    assert index.variables == {"UV_DEFAULT_INDEX": "https://user:pw@other.invalid/simple", "UV_INDEX": "https://mine.invalid/simple"}
    assert set(index.hosts) == {"mine.invalid", "other.invalid"}
    assert index.passwords == ("user:pw",)
    named = await indexes_of(programs, variables_of(home, UV_INDEX_URL="https://third.invalid/simple"))(ScriptLanguage.PYTHON)
    assert named.variables == {"UV_INDEX_URL": "https://third.invalid/simple", "UV_INDEX": "https://mine.invalid/simple"}


async def test_what_npms_settings_name_is_told_by_variables_and_its_tokens_are_not(home: Path) -> None:
    (home / ".npmrc").write_text(
        "fetch-retries=0\nregistry=http://mine.invalid:81/\n@acme:registry=http://acme.invalid/\n//mine.invalid:81/:_authToken=s3cret\n"
    )
    index = await indexes_of(Programs.found(Path(uv.find_uv_bin())), variables_of(home))(ScriptLanguage.NODEJS)
    assert index.variables == {"npm_config_registry": "http://mine.invalid:81/", "npm_config_@acme:registry": "http://acme.invalid/"}
    assert set(index.hosts) == {"mine.invalid:81", "acme.invalid"}
    assert "s3cret" not in str(index)
