"""The tables of a database that the service gives to an app."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from engine.making.inside.tool_agent_serving import databases

DATABASES: Any = databases


class Extension:
    """As Flask-SQLAlchemy's."""

    def __init__(self, fault: str = "") -> None:
        self.made, self._fault = 0, fault
        self.of: str | None = ""

    def create_all(self, bind_key: str | None = "__all__") -> None:
        """None: of the default database only. The first argument of release 2 is called `bind`, and means the same."""
        if self._fault:
            raise RuntimeError(self._fault)
        self.made += 1
        self.of = bind_key


def app(extension: object, address: str = "sqlite:////home/tool/app.db") -> SimpleNamespace:
    return SimpleNamespace(extensions={"sqlalchemy": extension}, config={"SQLALCHEMY_DATABASE_URI": address}, app_context=nullcontext)


def test_its_tables_are_made_by_new_and_old_releases() -> None:
    extension = Extension()
    DATABASES.fill(app(extension))
    DATABASES.fill(app(SimpleNamespace(db=extension)))
    assert extension.made == 2


def test_databases_that_the_app_has_besides_are_left_as_they_are() -> None:
    extension = Extension()
    DATABASES.fill(app(extension))
    assert (extension.made, extension.of) == (1, None)


class Broken:
    """An app that has nothing to do with Flask."""

    @property
    def extensions(self) -> object:
        raise LookupError("no such thing")


def test_an_app_whose_extensions_are_something_else_starts(capsys: pytest.CaptureFixture[str]) -> None:
    DATABASES.fill(SimpleNamespace(extensions=["sqlalchemy"]))
    DATABASES.fill(SimpleNamespace(extensions=1, config=None))
    assert capsys.readouterr().err == ""
    DATABASES.fill(Broken())
    assert capsys.readouterr().err == "The tables of the database could not be made: no such thing\n"


@pytest.mark.parametrize("address", ["sqlite:///own.db", "postgresql://db/app", ""])
def test_another_database_is_left_as_it_is(address: str) -> None:
    extension = Extension()
    DATABASES.fill(app(extension, address))
    assert extension.made == 0


def test_an_app_without_one_is_served_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    DATABASES.fill(SimpleNamespace())
    DATABASES.fill(SimpleNamespace(extensions={}))
    DATABASES.fill(app(Extension("no such type")))
    assert capsys.readouterr().err == "The tables of the database could not be made: no such type\n"
