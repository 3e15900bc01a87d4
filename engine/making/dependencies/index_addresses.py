"""The package indexes of uv, in its order, from its environment variables."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from engine.runtimes.environments.indexes import Indexes
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from toolagent.contracts.sources import ScriptLanguage

Addresses: TypeAlias = Callable[[], Awaitable[tuple[str, ...]]]
"""Addresses of package indexes, the first one asked first; they may hold passwords. Raises IndexAway."""

_IN_ORDER = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
"""uv takes one of the last two: the newer name first."""
_NAMED = re.compile(r"^[A-Za-z0-9_.-]+=")


class IndexAway(Exception):
    """The package index does not answer now, whatever package was asked for. The message holds no address."""


def addresses_of(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Index addresses that use HTTP."""
    defaults = [name for name in _IN_ORDER[2:] if variables.get(name)]
    names = (*_IN_ORDER[:2], *defaults[:1])
    found = [_NAMED.sub("", word) for name in names for word in variables.get(name, "").split()]
    return tuple(dict.fromkeys(address.rstrip("/") for address in found if address.startswith(("http://", "https://"))))


def addresses_from(indexes: Indexes) -> Addresses:
    """The indexes of this host's installers."""

    async def addresses() -> tuple[str, ...]:
        try:
            index = await indexes(ScriptLanguage.PYTHON)
        except IndexesUnknown as error:
            # uv's message may hold an address.
            raise IndexAway("uv does not say which package index it uses.") from error
        return addresses_of(index.variables)

    return addresses
