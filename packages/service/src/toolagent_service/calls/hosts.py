"""Patterns of hosts and ports."""

_DEFAULT_PORTS = (80, 443)


def host_matches(pattern: str, host: str, port: int) -> bool:
    """Whether a pattern (`example.com`, `*.example.com:8443`, `*`) matches this host and port. Without a port it means 80 and 443."""
    name, wanted = parted(pattern)
    return port in ports_of(wanted) and _name_matches(name, host)


def _name_matches(name: str, host: str) -> bool:
    host = host.lower().rstrip(".")
    return name == "*" or host == name or (name.startswith("*.") and host.endswith(name[1:]))


def parted(pattern: str) -> tuple[str, int | None]:
    """Name and port of a pattern. An IPv6 address is in brackets."""
    name, colon, port = pattern.rpartition(":")
    if not colon or (pattern.startswith("[") and pattern.endswith("]")):
        return pattern.strip("[]").lower().rstrip("."), None
    return name.strip("[]").lower().rstrip("."), int(port)


def ports_of(port: int | None) -> tuple[int, ...]:
    return (port,) if port else _DEFAULT_PORTS
