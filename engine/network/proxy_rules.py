"""Which hosts a sandboxed program may reach, and at which addresses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.network.addresses import Address, Resolve, resolve
from engine.network.proxy_refusal import Refused
from engine.network.public_addresses import ForbiddenAddress, PublicAddresses
from toolagent_service.calls.hosts import host_matches

_MAX_ASKS = 1000
_NAMED = 10
_FIELD = "securityContext.networkAccess.allowHosts"


@dataclass(frozen=True, slots=True)
class Asked:
    """A connection that a program requested. `reason` names the pattern that allowed it, or why it was refused or failed."""

    host: str
    port: int
    allowed: bool
    reason: str


@dataclass(slots=True)
class Asks:
    """The requested connections of one run: the first thousand, and the number of further ones. `tell` is called for each."""

    tell: Callable[[Asked], None] | None = None
    kept: list[Asked] = field(default_factory=list[Asked])
    left_out: int = 0

    def add(self, asked: Asked) -> None:
        if len(self.kept) < _MAX_ASKS:
            self.kept.append(asked)
        else:
            self.left_out += 1
        if self.tell is not None:
            self.tell(asked)


class Rules:
    """`hosts` are the patterns that a program was granted; hosts that match `private_hosts` may be at addresses that are not public."""

    def __init__(self, hosts: Sequence[str], private_hosts: Sequence[str] = (), resolve: Resolve = resolve) -> None:
        self._hosts, self._allowed = tuple(hosts), PublicAddresses(private_hosts, resolve)

    def pattern_for(self, host: str, port: int) -> str:
        """The pattern that allows this host. Raises Refused."""
        for pattern in self._hosts:
            if host_matches(pattern, host, port):
                return pattern
        raise Refused(
            403,
            "http_request_denied",
            f"{_joined(host, port)} is not among the hosts that this tool may reach ({_listed(self._hosts)}). "
            f"If it should be, name it in {_FIELD} of the tool, and in the host's policy.",
            f"not among the allowed hosts ({_listed(self._hosts)})",
        )

    async def addresses(self, host: str, port: int) -> list[Address]:
        """All addresses of an allowed host, judged; connections go to one of them. Raises Refused."""
        try:
            return await self._allowed.of(host, port)
        except ForbiddenAddress as forbidden:
            address = forbidden.address
            raise Refused(
                403,
                "destination_ip_prohibited",
                f"{_joined(host, port)} is allowed, but it is at {address}, which is not a public address, or this machine's own. "
                f"If that is meant, name {_joined(host, port)} among the private_hosts of the host's sandbox policy.",
                f"{address} is not a public address, or is our own",
            ) from forbidden
        except TimeoutError as error:
            raise Refused(504, "dns_timeout", f"The host {host} could not be resolved: {error}.") from error
        except (OSError, ValueError, OverflowError) as error:
            raise Refused(502, "dns_error", f"The host {host} could not be resolved: {error}.") from error


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listed(patterns: Sequence[str]) -> str:
    more = len(patterns) - _NAMED
    return ", ".join(patterns[:_NAMED]) + (f" and {more} more" if more > 0 else "") or "none"
