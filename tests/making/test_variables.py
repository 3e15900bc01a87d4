"""The variables that an app of a repository runs with."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest
from pydantic import ValidationError

from engine.making.python_sources.variables import Variables, variables_for
from engine.making.repositories.trees import Tree
from toolagent.contracts.task_specs import GithubDeploy


def found(folder: Path, files: Mapping[str, str], **given: str) -> Variables:
    for name, text in files.items():
        (folder / name).write_text(text)
    return variables_for(Tree.read(folder), PurePosixPath(), given)


ORM = {"models.py": "from sqlalchemy.orm import Session\n"}
EXAMPLE = """
# comment
export MODE=fast  # quick
NAME="quoted value"
TOKEN=your-token-here
EMPTY=
PATH=/evil
TOOL_AGENT_STATE_DIR=/evil
"""


def test_defaults_of_the_example_are_taken_and_what_has_none_is_named(tmp_path: Path) -> None:
    variables = found(tmp_path, {".env.example": EXAMPLE})
    assert variables.values == {"MODE": "fast", "NAME": "quoted value"}
    assert variables.missing == ("TOKEN", "EMPTY")


@pytest.mark.parametrize("name", [".env-example", "env.sample", "sample.env"])
def test_an_example_may_have_another_usual_name(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, {name: "MODE=fast"}).values == {"MODE": "fast"}


def test_that_a_server_is_to_listen_is_not_taken_from_the_example(tmp_path: Path) -> None:
    (tmp_path / ".env.example").write_text("MCP_TRANSPORT_TYPE=http\nMAIL_TRANSPORT=smtp\n")
    assert variables_for(Tree.read(tmp_path), PurePosixPath(), {}).values == {"MAIL_TRANSPORT": "smtp"}


def test_what_the_task_gives_goes_before(tmp_path: Path) -> None:
    variables = found(tmp_path, {".env.example": EXAMPLE}, MODE="slow", EMPTY="x")
    assert variables.values == {"MODE": "slow", "NAME": "quoted value", "EMPTY": "x"}
    assert variables.missing == ("TOKEN",)


@pytest.mark.parametrize("value", ["secret:OPENAI_API_KEY", "https://x.test/?key=secret:OTHER", '"Secret:X"'])
def test_a_repository_names_no_secret_of_the_host(tmp_path: Path, value: str) -> None:
    variables = found(tmp_path, {".env.example": f"X={value}"})
    assert (variables.values, variables.missing) == ({}, ("X",))


def test_a_line_that_is_very_long_takes_no_time(tmp_path: Path) -> None:
    assert found(tmp_path, {".env.example": f"A=x{' ' * 400_000}x\nB=1"}).values == {"B": "1"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("DATABASE_URL=postgresql://user:pw@db/app", "sqlite:////home/tool/app.db"),
        ("DATABASE_URL=postgresql+asyncpg://user:pw@db/app", "sqlite+aiosqlite:////home/tool/app.db"),
        ("DATABASE_URL=", "sqlite:////home/tool/app.db"),
        ("DATABASE_URL=sqlite:///./own.db", "sqlite:///./own.db"),
    ],
)
def test_an_app_that_wants_a_database_is_offered_one_in_its_home(tmp_path: Path, said: str, expected: str) -> None:
    variables = found(tmp_path, {**ORM, ".env.example": said})
    assert variables.values == {"DATABASE_URL": expected}
    assert bool(variables.notes) == (expected != "sqlite:///./own.db")


SETTINGS = """
from pydantic import Field
from pydantic_settings import BaseSettings

class Settings(BaseSettings):
    api_url: str
    count: int = 3
    key: str = Field(..., alias="THE_KEY")
    other: str = Field(default="x")
    model_config = {}

class Prefixed(BaseSettings, env_prefix="APP_"):
    name: str

class Told(BaseSettings):
    name: str
    model_config = {"env_prefix": "TOLD_", "extra": "ignore"}

class Untold(BaseSettings):
    bare: str
    model_config = {"env_prefix": None}
"""


def test_settings_without_a_default_are_asked_for_before_anything_is_started(tmp_path: Path) -> None:
    assert found(tmp_path, {"settings.py": SETTINGS}).required == ("API_URL", "THE_KEY", "APP_NAME", "TOLD_NAME", "BARE")
    assert found(tmp_path, {"settings.py": SETTINGS}, API_URL="x", THE_KEY="y", APP_NAME="z", TOLD_NAME="t", BARE="b").required == ()


def test_a_type_that_is_deeper_than_python_writes_is_a_type_as_others(tmp_path: Path) -> None:
    deep = f"from pydantic_settings import BaseSettings\n\nclass Deep(BaseSettings):\n    union: {'|'.join(['int'] * 2000)}\n"
    assert found(tmp_path, {"deep.py": deep}).required == ("UNION",)


NESTED = """
from pydantic import BaseModel
from pydantic_settings import BaseSettings, SettingsConfigDict

class Session(BaseSettings):
    secret_key: str
    days: int = 3

class Address(BaseModel):
    host: str

class Redis(BaseModel):
    address: Address
    port: int = 6379

class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="APP__", env_nested_delimiter="__")
    session: Session
    redis: Redis
    more: Redis = Redis(address=Address(host="x"))
"""


def test_settings_of_several_classes_are_asked_for_by_the_names_that_are_read(tmp_path: Path) -> None:
    files = {"settings.py": NESTED}
    assert found(tmp_path, files).required == ("APP__SESSION__SECRET_KEY", "APP__REDIS__ADDRESS__HOST")
    assert found(tmp_path, files, APP__SESSION='{"secret_key": "x"}', app__redis__address__host="x").required == ()


KEYED = "class Settings(BaseSettings):\n    api_key: str\n"
FREE = "class Settings(BaseSettings):\n    api_key: str = ''\n"


def test_settings_of_one_name_in_two_modules_are_both_read(tmp_path: Path) -> None:
    assert found(tmp_path, {"a.py": KEYED, "b.py": FREE}).required == ("API_KEY",)


PARTED = """
class Part(BaseModel):
    {field}: str

class Settings(BaseSettings, env_prefix="{field}_", env_nested_delimiter="__"):
    part: Part
"""


def test_a_part_is_looked_for_in_its_own_module_first(tmp_path: Path) -> None:
    files = {f"{field}.py": PARTED.format(field=field) for field in ("a", "b")}
    assert found(tmp_path, files).required == ("A_PART__A", "B_PART__B")


UNDERSCORED = """
class Redis(BaseModel):
    host: str

class Settings(BaseSettings, env_nested_delimiter="_"):
    redis: Redis
    queue: Queue
    api: str
    plain: str
"""


def test_what_is_held_by_another_variable_is_not_asked_for(tmp_path: Path) -> None:
    known = {"REDIS": "{}", "QUEUE_NAME": "x", "API_KEY": "x", "PLAIN__X": "x"}
    assert found(tmp_path, {"settings.py": UNDERSCORED}, **known).required == ("API", "PLAIN")


def test_a_part_is_found_in_a_module_without_settings(tmp_path: Path) -> None:
    settings = PARTED.format(field="a").partition("class Settings")
    files = {"parts.py": settings[0], "settings.py": "".join(settings[1:])}
    assert found(tmp_path, files).required == ("A_PART__A",)
    assert found(tmp_path, files, A_PART__A="x").required == ()


def test_the_example_that_lies_beside_the_modules_goes_before_that_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/.env.template").write_text("MODE=inner\nKEY=\nURL=")
    (tmp_path / ".env.template").write_text("MODE=outer\nKEY=\nURL=http://localhost\nLEVEL=3")
    tree = Tree.read(tmp_path)
    inner, outer = (variables_for(tree, PurePosixPath(), {}, beside=place) for place in (PurePosixPath("src"), None))
    assert (inner.values, inner.missing) == ({"MODE": "inner", "URL": "http://localhost", "LEVEL": "3"}, ("KEY",))
    assert (outer.values, outer.missing) == ({"MODE": "outer", "URL": "http://localhost", "LEVEL": "3"}, ("KEY",))


@pytest.mark.parametrize("env", [{"PATH": "/x"}, {"LD_PRELOAD": "/x"}, {"TOOL_AGENT_X": "1"}, {"API_KEY": "literal"}])
def test_a_task_gives_no_variable_of_the_sandbox_and_no_key_itself(env: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match=next(iter(env))):
        GithubDeploy(repo_url="https://example.com/a/b", tool_name="x", env=env)


def test_a_key_is_named() -> None:
    assert GithubDeploy(repo_url="https://example.com/a/b", tool_name="x", env={"API_KEY": "secret:API_KEY", "MODE": "fast"}).env


@pytest.mark.parametrize(
    ("default", "values"),
    [("postgresql://a:b@localhost:5432/c", {"DATABASE_URL": "sqlite:////home/tool/app.db"}), ("sqlite:///./own.db", {})],
)
def test_a_server_that_the_code_takes_for_its_database_gives_way_to_sqlite(tmp_path: Path, default: str, values: Mapping[str, str]) -> None:
    variables = found(tmp_path, {**ORM, "db.py": f'url = os.getenv(\n    "DATABASE_URL",\n    "{default}",\n)\n'})
    assert variables.values == values


def test_sqlite_as_python_knows_it_is_nothing_for_others(tmp_path: Path) -> None:
    for name, text in {**ORM, ".env.example": "DATABASE_URL=postgresql://user:pw@db/app\n"}.items():
        (tmp_path / name).write_text(text)
    read = variables_for(Tree.read(tmp_path), PurePosixPath(), {}, is_python=False)
    assert read.values == {"DATABASE_URL": "postgresql://user:pw@db/app"}
    assert read.notes == ()


SERVER = "postgresql://a:b@localhost/c"


def test_code_that_speaks_to_a_server_alone_is_given_no_sqlite(tmp_path: Path) -> None:
    code = f'import asyncpg\nurl = os.getenv("DATABASE_URL", "{SERVER}")\n'
    variables = found(tmp_path, {"db.py": code, ".env.example": f"DATABASE_URL=\nX_DB_URL={SERVER}\n"})
    assert variables.values == {"X_DB_URL": SERVER}
    assert variables.missing == ("DATABASE_URL",)


def test_two_databases_are_two_files(tmp_path: Path) -> None:
    variables = found(tmp_path, {**ORM, ".env.example": f"SOURCE_DATABASE_URL={SERVER}\nTARGET_DATABASE_URL={SERVER}\n"})
    assert len(set(variables.values.values())) == 2


def test_one_address_for_two_drivers_is_one_file(tmp_path: Path) -> None:
    examples = (
        "DATABASE_URL=postgresql+asyncpg://u:p@db/app\nSYNC_DATABASE_URL=postgresql://u:p@db/app\nLOG_DB_URL=postgresql://u:p@db/log\n"
    )
    assert found(tmp_path, {**ORM, ".env.example": examples}).values == {
        "DATABASE_URL": "sqlite+aiosqlite:////home/tool/app.db",
        "SYNC_DATABASE_URL": "sqlite:////home/tool/app.db",
        "LOG_DB_URL": "sqlite:////home/tool/LOG_DB_URL.db",
    }


def test_a_file_is_joined_by_one_driver_besides_that_of_what_opened_it(tmp_path: Path) -> None:
    names = ("DATABASE_URL", "TEST_DATABASE_URL", "ASYNC_DATABASE_URL", "ASYNC_TEST_DATABASE_URL", "ASYNC_LOG_DATABASE_URL")
    lines = (f"{name}=postgresql{'+asyncpg' if 'ASYNC' in name else ''}://u:p@db/app\n" for name in names)
    files = [one.rpartition("/")[2] for one in found(tmp_path, {**ORM, ".env.example": "".join(lines)}).values.values()]
    assert files[:3] == ["app.db", "TEST_DATABASE_URL.db", "app.db"]
    assert len({*files}) == 4


def test_a_database_is_given_to_names_that_a_tool_may_have_and_these_are_not_missing(tmp_path: Path) -> None:
    names = ("TOOL_AGENT_DATABASE_URL", "LD_DB_URL", "1_DB_URL", "\xe9_DB_URL", f"{'x' * 125}_DB_URL", "OWN_DB_URL")
    code = "".join(f'os.getenv("{name}", "{SERVER}")\n' for name in names)
    settings = "class Settings(BaseSettings):\n    \xe9_db_url: str\n"
    variables = found(tmp_path, {**ORM, "db.py": code, "settings.py": settings, ".env.example": "OWN_DB_URL=changeme\n"})
    assert (variables.values, variables.missing) == ({"OWN_DB_URL": "sqlite:////home/tool/OWN_DB_URL.db"}, ())
