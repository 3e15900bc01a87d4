"""Tool Agent's patterns of hosts (`example.com`, `*.example.com:8443`, `*`). Without a port, they mean 80 and 443."""

DEFAULT_PORTS = (80, 443)


def is_allowed(patterns: list[str], host: str, port: int) -> bool:
    return any(allows(pattern, host, port) for pattern in patterns)


def allows(pattern: str, host: str, port: int) -> bool:
    name, wanted = parted(pattern)
    if port not in ((wanted,) if wanted else DEFAULT_PORTS):
        return False
    host = host.lower().rstrip(".").strip("[]")
    return name == "*" or host == name or (name.startswith("*.") and host.endswith(name[1:]))


def parted(pattern: str) -> tuple[str, int | None]:
    """Name and port of a pattern. An IPv6 address is in brackets."""
    name, colon, port = pattern.rpartition(":")
    if not colon or pattern.endswith("]"):
        name, port = pattern, ""
    return name.strip("[]").lower().rstrip("."), int(port) if port else None
