"""A process of ours raises its limit of open files to the hard limit."""

import subprocess
import sys


def test_a_process_that_is_let_opens_more_files_than_a_shell_allows() -> None:
    code = """
import resource
from workers.__main__ import allow_many

resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
allow_many()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30).stdout == "(4096, 4096)\n"
