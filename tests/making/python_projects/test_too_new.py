"""Errors of programs whose Python is newer than their packages, and errors with other causes."""

import pytest

from engine.making.python_projects.too_new import is_too_new, older_package

FAILING_PACKAGE = """Traceback (most recent call last):
  File "/tool/main.py", line 3, in <module>
    import app
  File "/environment/lib/python3.11/site-packages/fastapi/openapi/models.py", line 103, in <module>
    class Schema(BaseModel):
  File "/environment/lib/python3.11/site-packages/pydantic/utils.py", line 256, in generate_model_signature
    merged_params[param_name] = Parameter(
  File "/usr/lib/python3.11/inspect.py", line 2725, in __init__
    raise ValueError('{!r} is not a valid parameter name'.format(name))
ValueError: 'not' is not a valid parameter name
"""
NO_DATABASE = """Traceback (most recent call last):
  File "/tool/app.py", line 9, in <module>
    connect()
  File "/environment/lib/python3.11/site-packages/sqlalchemy/engine/base.py", line 145, in __init__
    self._dbapi_connection = engine.raw_connection()
  File "/environment/lib/python3.11/site-packages/psycopg2/__init__.py", line 122, in connect
    conn = _connect(dsn)
psycopg2.OperationalError: could not connect to server
"""
OWN_FAULT = """Traceback (most recent call last):
  File "/tool/app.py", line 9, in <module>
    raise ValueError("SECRET_KEY is not set")
ValueError: SECRET_KEY is not set
"""


@pytest.mark.parametrize(
    "told",
    [
        FAILING_PACKAGE,
        "ModuleNotFoundError: No module named 'distutils'",
        "ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/python3.11/collections/__init__.py)",
        "AttributeError: module 'inspect' has no attribute 'getargspec'",
        "AttributeError: module 'asyncio' has no attribute 'coroutine'",
    ],
)
def test_a_package_that_is_older_than_its_python_is_known(told: str) -> None:
    assert is_too_new(told)


@pytest.mark.parametrize(
    "told",
    [
        "",
        NO_DATABASE,
        OWN_FAULT,
        "ModuleNotFoundError: No module named 'torch'",
        "ModuleNotFoundError: No module named 'tkinter'",
        "No module named '_ctypes'",
        "AttributeError: module 'os' has no attribute 'startfile'",
        'File "/e/site-packages/cv2/__init__.py", line 1, in <module>\nImportError: libGL.so.1: cannot open shared object file',
        "ImportError: cannot import name 'x' from 'app'",
        "KeyError: 'PORT'",
    ],
)
def test_another_fault_is_none_of_its_python(told: str) -> None:
    assert not is_too_new(told)


LOCK = "flask==3.0.0 \\\n    --hash=sha256:0\nmcp[cli]==2.3.0\nyoung==0.9.1\nmarkupsafe==3.0.1\npydantic==2.14.4\n"


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ("ModuleNotFoundError: No module named 'mcp.server.fastmcp'. This is mcp 2.x", "mcp<2"),
        ("ImportError: cannot import name 'escape' from 'flask' (/x/site-packages/flask/__init__.py)", "flask<3"),
        ("AttributeError: module 'markupsafe' has no attribute 'soft_unicode'", "markupsafe<3"),
        ("ImportError: cannot import name 'gone' from 'pydantic._internal._typing_extra' (/x/_typing_extra.py)", "pydantic<2.14"),
        ("ModuleNotFoundError: No module named 'pydantic._migrated'", "pydantic<2.14"),
        ("ImportError: cannot import name '_gone' from 'pydantic.main' (/x/main.py)", "pydantic<2"),
        ("ModuleNotFoundError: No module named 'young.parts'", ""),
        ("ModuleNotFoundError: No module named 'app.settings'", ""),
        ("ModuleNotFoundError: No module named 'mcp'", ""),
        ("ImportError: cannot import name 'Mapping' from 'collections'", ""),
        ("ModuleNotFoundError: No module named 'pkg_resources'", "setuptools<81"),
        ("ModuleNotFoundError: No module named 'psycopg'", ""),
    ],
)
def test_a_package_that_lacks_what_was_asked_of_it_is_held_below_its_major_version(told: str, line: str) -> None:
    assert older_package(told, LOCK) == line


def test_a_project_with_psycopg2_gets_the_sqlalchemy_that_takes_it_for_postgresql() -> None:
    lock = "psycopg2-binary==2.9.10\nsqlalchemy==2.1.9\n"
    assert older_package("ModuleNotFoundError: No module named 'psycopg'", lock) == "sqlalchemy<2.1"
