"""Opens paths that a policy grants without following links: another tool that writes there may have made one."""

import errno
import os
import stat
from pathlib import Path


def opened(path: Path) -> int:
    """A descriptor (O_PATH) of the path; the caller closes it. Raises OSError; ELOOP if there is a symbolic link on the way."""
    found = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for name in path.parts[1:]:
        outer = found
        try:
            found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=outer)
        finally:
            os.close(outer)
        if stat.S_ISLNK(os.fstat(found).st_mode):
            os.close(found)
            raise OSError(errno.ELOOP, f"{name} is a symbolic link; the policy has to name what it leads to", str(path))
    return found
