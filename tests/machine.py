"""What a test does where the machine lacks something."""

from typing import NoReturn

import pytest

from workers.settings.environment import environment

__all__ = ["lacking"]


def lacking(what: str) -> NoReturn:
    """Skips the test with this reason; fails it where everything is checked, as there nothing may be left out."""
    if environment().get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)
