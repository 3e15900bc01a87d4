"""Variables that tell the installers in a container about the package index."""

import re
from collections.abc import Mapping

from engine.runtimes.environments.indexes import Index

_PIP = {"PIP_INDEX_URL": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"), "PIP_EXTRA_INDEX_URL": ("UV_INDEX", "UV_EXTRA_INDEX_URL")}
_NAMED = re.compile(r"^[\w.-]+=")
"""uv lets an index have a name."""


def index_variables(index: Index) -> Mapping[str, str]:
    """For uv, pip and npm. Variables that hold a password are left out: the code of packages runs there and would see it."""
    told = {name: value for name, value in index.variables.items() if not Index(variables={name: value}).passwords}
    for pip, names in _PIP.items():
        if addresses := [_NAMED.sub("", word) for name in names for word in told.get(name, "").split()]:
            told[pip] = " ".join(addresses)
    return told
