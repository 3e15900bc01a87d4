"""The process environment."""

import os
from collections.abc import Mapping


def environment() -> Mapping[str, str]:
    """The variables of the process. Only this module and the settings read them."""
    return os.environ  # noqa: TID251 - here it is allowed
