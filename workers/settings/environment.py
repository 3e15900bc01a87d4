"""The process environment."""

import os
from collections.abc import Mapping


def environment() -> Mapping[str, str]:
    """The only place that looks at it besides the settings themselves."""
    return os.environ  # noqa: TID251 - here it is allowed
