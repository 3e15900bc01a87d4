"""What a manifest says of a call's effects, as hints for those who decide whether to make it."""

from dataclasses import dataclass

from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolManifest

__all__ = ["ToolHints", "hints_of"]


@dataclass(frozen=True, slots=True)
class ToolHints:
    """The four hints of MCP's tool annotations."""

    read_only: bool
    """A call changes nothing."""
    destructive: bool
    """A call may change or remove what was there."""
    idempotent: bool
    """A second equal call has no further effect."""
    open_world: bool
    """A call may reach what belongs to others."""


def hints_of(manifest: ToolManifest) -> ToolHints:
    """What a manifest leaves open counts as the more dangerous: no manifest says that a change only adds."""
    is_read_only = manifest.side_effect_scope is SideEffectScope.NONE and manifest.permission_class is not PermissionClass.WRITE
    return ToolHints(
        read_only=is_read_only,
        destructive=not is_read_only,
        idempotent=manifest.repeatable,
        open_world=_reaches_others(manifest),
    )


def _reaches_others(manifest: ToolManifest) -> bool:
    is_external = manifest.permission_class is PermissionClass.EXTERNAL or manifest.side_effect_scope is SideEffectScope.NETWORK
    return is_external or bool(manifest.security_context.network_access.allow_hosts)
