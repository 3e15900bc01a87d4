"""How many files a process of ours may open: each connection of a caller is one."""

import resource

_ENOUGH = 65_536


def allow_many() -> None:
    """As many as the hard limit lets, up to 65,536. Shells allow 1,024, which a thousand callers use up; then none is answered."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(_ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
