"""Moves the keys that an MCP server is given to the secrets."""

import re
from dataclasses import dataclass

from pydantic import JsonValue

from engine.registry.formats.document import cleaned
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.records import CatalogFault
from toolagent.core.mcp_specs import SpecFault, settled_spec

_NAMED = re.compile(r"\bsecret:([A-Z][A-Z0-9_]*)")


@dataclass(frozen=True, slots=True)
class KeptSpec:
    """`faults` says which keys were moved."""

    spec: McpServerSpec
    faults: tuple[CatalogFault, ...] = ()


class _Nowhere:
    """Keeps nothing."""

    def keep(self, name: str, value: str) -> None:
        """It is only to be seen what would be moved."""


def with_named_keys(name: str, spec: McpServerSpec, file: str, where: str, vault: SecretVault) -> KeptSpec:
    """The spec with its `type`, and with `secret:NAME` in place of each key. Raises SpecFault; then nothing was moved for it."""
    settled_spec(spec)
    # What is wrong only of a spec with keys is seen before one is kept.
    settled_spec(_moved(name, spec, file, where, _Nowhere()).spec)
    kept = _moved(name, spec, file, where, vault)
    return KeptSpec(settled_spec(kept.spec), kept.faults)


def _moved(name: str, spec: McpServerSpec, file: str, where: str, vault: SecretVault) -> KeptSpec:
    """Raises SpecFault."""
    given: dict[str, JsonValue] = {"url": spec.url, "env": {**spec.env}, "headers": {**spec.headers}}
    hidden = cleaned(given, f"mcp_{name}", file, where, vault)
    if hidden.refused or not isinstance(hidden.item, dict):
        fault = hidden.faults[-1]
        field = fault.field.removeprefix(f"{where}.").partition(".")[0]
        raise SpecFault(field if field in given else "env", fault.reason)
    return KeptSpec(spec.model_copy(update=hidden.item), tuple(hidden.faults))


def secrets_of(spec: McpServerSpec) -> frozenset[str]:
    """The names of the secrets that it is given."""
    return frozenset(name for text in (spec.url or "", *spec.env.values(), *spec.headers.values()) for name in _NAMED.findall(text))
