"""Moves the keys that an MCP server is given to the secrets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from engine.registry.formats.document import cleaned
from engine.registry.formats.literal_keys import is_made_for
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.records import CatalogFault
from toolagent.core.mcp_specs import SpecFault, settled_spec

_NAMED = re.compile(r"\bsecret:([A-Z][A-Z0-9_]*)")
_OUR_OWN = frozenset({"MCP_STATE_KEY"})
"""The service's own keys, which no server gets."""

_ASKED = "secret:{}: a request names no secret. Give the key itself, which becomes one; the operator names secrets in `mcp.json`."
_KEPT_BACK = "secret:{}: it is a key of the service itself, which no server is given."


@dataclass(frozen=True, slots=True)
class KeptSpec:
    """A spec without literal keys. `faults` names the moved keys."""

    spec: McpServerSpec
    faults: tuple[CatalogFault, ...] = ()


class _Nowhere:
    """A vault that stores nothing, to try out what would be moved."""

    def keep(self, name: str, value: str) -> None:
        """Ignore the value."""


def with_named_keys(name: str, spec: McpServerSpec, file: str, where: str, vault: SecretVault) -> KeptSpec:
    """The spec with its `type`, and with `secret:NAME` in place of each key. If it raises SpecFault, nothing was moved."""
    settled_spec(spec)
    _refuse_secrets(spec, _OUR_OWN, _KEPT_BACK)
    # Check the spec with named keys before storing any key.
    settled_spec(_moved(name, spec, file, where, _Nowhere()).spec)
    kept = _moved(name, spec, file, where, vault)
    return KeptSpec(settled_spec(kept.spec), kept.faults)


def with_keys_of_request(name: str, spec: McpServerSpec, vault: SecretVault) -> McpServerSpec:
    """The same for the spec of a request, which may not name secrets. Raises SpecFault."""
    settled_spec(spec)
    _refuse_secrets(spec, secrets_of(spec), _ASKED)
    return with_named_keys(name, spec, "the request", "$", vault).spec


def _moved(name: str, spec: McpServerSpec, file: str, where: str, vault: SecretVault) -> KeptSpec:
    """Raises SpecFault."""
    given: dict[str, JsonValue] = {"url": spec.url, "env": {**spec.env}, "headers": {**spec.headers}}
    if spec.oauth is not None:
        given["oauth"] = {"client_secret": spec.oauth.client_secret}
    hidden = cleaned(given, owner_of(name), file, where, vault)
    if hidden.refused or not isinstance(hidden.item, dict):
        fault = hidden.faults[-1]
        field = fault.field.removeprefix(f"{where}.").partition(".")[0]
        raise SpecFault(field if field in given else "env", fault.reason)
    changes: dict[str, object] = {**hidden.item}
    if spec.oauth is not None:
        changes["oauth"] = spec.oauth.model_copy(update=cast("dict[str, object]", hidden.item["oauth"]))
    return KeptSpec(spec.model_copy(update=changes), tuple(hidden.faults))


def secrets_of(spec: McpServerSpec) -> frozenset[str]:
    """Names of the secrets in a spec."""
    return frozenset(name for _, text in _given(spec) for name in _NAMED.findall(text))


def owner_of(name: str) -> str:
    """The prefix of secrets made for a server."""
    return f"mcp_{name}"


def is_made_here(name: str, secret: str, value: str) -> bool:
    """Whether the secret was made from a key of this server."""
    return is_made_for(owner_of(name), secret, value)


def is_made_for_some_server(secret: str, value: str) -> bool:
    """Whether the secret was made from a key of any server, or of a tool or container whose id has the same prefix."""
    return is_made_for("mcp", secret, value)


def _given(spec: McpServerSpec) -> Iterator[tuple[str, str]]:
    """The texts that may name secrets, each with its field."""
    yield "url", spec.url or ""
    for field, values in (("env", spec.env), ("headers", spec.headers)):
        for text in values.values():
            yield field, text
    if spec.oauth is not None:
        yield "oauth", spec.oauth.client_secret or ""


def _refuse_secrets(spec: McpServerSpec, refused: frozenset[str], reason: str) -> None:
    """Raises SpecFault."""
    for field, text in _given(spec):
        for name in _NAMED.findall(text):
            if name in refused:
                raise SpecFault(field, reason.format(name))
