"""Arguments of several functions of the coding role."""

from typing import Annotated

from pydantic import Field

USUAL_S = 120.0
LONGEST_S = 1_800.0
"""Limits of a command, in seconds."""

MemLimit = Annotated[str | None, Field(pattern=r"^\d+ *[kmgtKMGT]?[iI]?[bB]?$", description="Such as 512m or 2g.")]
NanoCpus = Annotated[int | None, Field(ge=1, description="Billionths of a core.")]
Ports = Annotated[tuple[Annotated[int, Field(ge=1, le=65_535)], ...], Field(max_length=16, description="Ports of the container.")]
