"""Logged errors have a limited length, and hold no values of variables."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAILS = """
import logging, sys
import structlog
from workers.logs import configure_logging

def fail():
    held = b"a variable of it" * 1_000_000
    raise ValueError("what was wrong: " + "x" * 5_000_000)

configure_logging()
try:
    fail()
except ValueError as error:
    if sys.argv[1] == "structlog":
        structlog.get_logger().error("failed", reason=str(error), exc_info=error)
    else:
        logging.getLogger("uvicorn.error").error("failed: %s", error, exc_info=error)
"""


@pytest.mark.parametrize("way", ["structlog", "logging"])
def test_an_error_that_quotes_megabytes_is_a_short_line(way: str) -> None:
    said = subprocess.run([sys.executable, "-c", FAILS, way], cwd=ROOT, capture_output=True, text=True, check=True).stderr
    assert len(said) < 50_000
    assert "what was wrong" in said
    assert "a variable of it" not in said
    assert way == "logging" or json.loads(said)["exception"].startswith("Traceback")


WAITS = """
import logging
from toolagent.core.failures import StoreFullError
from workers.logs import configure_logging

configure_logging()
try:
    try:
        raise OSError("No space left on device")
    except OSError as error:
        raise StoreFullError("There is no room: 100 % of it is taken.") from error
except StoreFullError:
    logging.getLogger("temporalio.activity").warning("Completing activity as failed ({'activity_type': 'settle'})", exc_info=True)
"""


def test_an_activity_that_waits_for_its_store_says_so_in_one_line() -> None:
    said = subprocess.run([sys.executable, "-c", WAITS], cwd=ROOT, capture_output=True, text=True, check=True).stderr
    assert said.endswith("({'activity_type': 'settle'}): There is no room: 100 % of it is taken.\n")
    assert said.count("\n") == 1


REFUSES = """
import logging, sys
from temporalio.exceptions import ApplicationError
from workers.logs import configure_logging

configure_logging(form="json" if "json" in sys.argv else None)
try:
    raise ApplicationError("It is part of the engine.", type="permission_denied", non_retryable=True)
except ApplicationError:
    told = {"activity_type": "control_tool", "workflow_id": "control-1"}
    logging.getLogger("temporalio.activity").warning("Completing activity as failed", exc_info=True, extra={"temporal_activity": told})
"""


def said_of(program: str, *arguments: str) -> str:
    return subprocess.run([sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stderr


def test_a_refused_request_is_one_line_and_no_stack_trace() -> None:
    said = said_of(REFUSES)
    assert said.endswith("control_tool of control-1 refused: permission_denied: It is part of the engine.\n")
    assert said.count("\n") == 1


SAYS = """
import logging, sys
import structlog
from workers.logs import configure_logging

configure_logging(*sys.argv[1:])
structlog.get_logger().info("ready", port=1)
structlog.get_logger().warning("late")
logging.getLogger("somebody").info("hello")
logging.getLogger("somebody").error("broken")
"""


def test_level_and_format_of_the_log_are_settings() -> None:
    lines = [json.loads(line) for line in said_of(SAYS, "info", "json").splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("ready", "info"),
        ("late", "warning"),
        ("hello", "info"),
        ("broken", "error"),
    ]
    plain = said_of(SAYS, "warning", "console")
    assert ("late" in plain, "broken" in plain, "ready" in plain, "hello" in plain, "{" in plain) == (True, True, False, False, False)
    assert said_of(SAYS, "error", "console").count("\n") == 1
