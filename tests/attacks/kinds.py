"""Every kind of attack there is: one file and one line each."""

from tests.attacks import (
    bombs,
    chats,
    clocks,
    content,
    disks,
    docker,
    engines,
    floods,
    folders,
    fuzz,
    models,
    neighbours,
    packages,
    ports,
    requests,
    schemas,
    starts,
    text,
    values,
)
from tests.attacks.attack import Kind

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    schemas.KIND,
    bombs.KIND,
    text.KIND,
    chats.KIND,
    values.KIND,
    folders.KIND,
    clocks.KIND,
    content.KIND,
    starts.KIND,
    neighbours.KIND,
    docker.KIND,
    engines.KIND,
    requests.KIND,
    disks.BROKEN,
    disks.KIND,
    models.BOMBS,
    models.STREAMS,
    packages.KIND,
    ports.KIND,
    floods.KIND,
    fuzz.KIND,
)
