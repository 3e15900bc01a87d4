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
"""What the service seals with: no server is given that."""

_ASKED = "secret:{}: a request names no secret. Give the key itself, which becomes one; the operator names secrets in `mcp.json`."
_KEPT_BACK = "secret:{}: it is a key of the service itself, which no server is given."


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
    _refuse_secrets(spec, _OUR_OWN, _KEPT_BACK)
    # What is wrong only of a spec with keys is seen before one is kept.
    settled_spec(_moved(name, spec, file, where, _Nowhere()).spec)
    kept = _moved(name, spec, file, where, vault)
    return KeptSpec(settled_spec(kept.spec), kept.faults)


def with_keys_of_request(name: str, spec: McpServerSpec, vault: SecretVault) -> McpServerSpec:
    """The same of what a caller sent, who chooses neither secrets nor where they go. Raises SpecFault."""
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
    """The names of the secrets that it is given."""
    return frozenset(name for _, text in _given(spec) for name in _NAMED.findall(text))


def owner_of(name: str) -> str:
    """What begins the names of secrets that are made for a server."""
    return f"mcp_{name}"


def is_made_here(name: str, secret: str, value: str) -> bool:
    """Whether the secret was made of a key that this server was given."""
    return is_made_for(owner_of(name), secret, value)


def is_made_for_some_server(secret: str, value: str) -> bool:
    """The same of any server; but for a tool or a container whose id begins as the keys of servers do."""
    return is_made_for("mcp", secret, value)


def _given(spec: McpServerSpec) -> Iterator[tuple[str, str]]:
    """The texts in which a secret may be named, each with its field."""
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
