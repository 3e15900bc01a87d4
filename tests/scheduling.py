"""Which tests one of several processes of pytest runs."""

from xdist.scheduler import LoadFileScheduling

__all__ = ["WITH_THE_SHARED_SERVICE", "Files", "file_of"]

WITH_THE_SHARED_SERVICE = frozenset(
    f"tests/system/test_{name}.py"
    for name in (
        "agent_chat",
        "bad_tools",
        "callbacks",
        "command_line",
        "idempotency",
        "large_results",
        "loaded",
        "local_tools",
        "refusals",
        "scripts",
        "shipped_tools",
        "temporal_ui",
        "the_loop",
    )
)
"""Files whose tests use the service of `tests/system/conftest.py`: they go to one process, as each would start its own."""


class Files(LoadFileScheduling):
    """A process gets the tests of a file, or of those that share a service."""

    def _split_scope(self, nodeid: str) -> str:
        file = file_of(nodeid)
        return "the shared service" if file in WITH_THE_SHARED_SERVICE else file


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]
