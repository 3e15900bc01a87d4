"""The number of GPUs of a container, capped by the policy."""

import pytest

from engine.runtimes.docker_engine.limits import gpus_within
from toolagent.contracts.sandbox import SandboxPolicy


@pytest.mark.parametrize(
    ("wanted", "most", "given"), [(-1, -1, -1), (2, -1, 2), (-1, 2, 2), (3, 2, 2), (1, 2, 1), (0, -1, 0), (0, 2, 0), (-1, 0, 0), (1, 0, 0)]
)
def test_a_container_gets_no_more_gpus_than_the_policy_allows(wanted: int, most: int, given: int) -> None:
    assert gpus_within(SandboxPolicy(gpus=most), wanted) == given
