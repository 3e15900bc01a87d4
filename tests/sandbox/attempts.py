"""All attempts, by their target."""

from collections.abc import Mapping

from tests.sandbox.abuse import Attempt
from tests.sandbox.attempts_files import FILES
from tests.sandbox.attempts_kernel import KERNEL
from tests.sandbox.attempts_network import NETWORK
from tests.sandbox.attempts_resources import RESOURCES

__all__ = ["ATTEMPTS", "GROUPS"]

GROUPS: Mapping[str, tuple[Attempt, ...]] = {
    "Files": FILES,
    "Kernel, processes, users": KERNEL,
    "Network": NETWORK,
    "Resources, and what is left": RESOURCES,
}
ATTEMPTS: Mapping[str, Attempt] = {attempt.name: attempt for group in GROUPS.values() for attempt in group}
