"""Which processors a run may use, where the kernel does not let us ration their time."""

import math
import os
import random

from toolagent.contracts.sandbox import SandboxLimits


def processors(limits: SandboxLimits) -> list[int]:
    """As many of ours as are asked for, part of one counted as one; any of them, so that runs spread."""
    ours = sorted(os.sched_getaffinity(0))
    return sorted(random.sample(ours, min(len(ours), math.ceil(limits.cpus or 1))))
