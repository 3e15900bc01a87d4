"""What a build container is to be like, and how that is written on it for who finds it later."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

__all__ = ["Note", "Wishes"]


@dataclass(frozen=True, slots=True)
class Wishes:
    """As seed 001 §6.3 has it. `hosts` may be reached besides the package index, where the policy allows."""

    tool_id: str
    image: str | None = None
    ports: tuple[int, ...] = ()
    volumes: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    hosts: tuple[str, ...] = ()
    mem_limit: str | None = None
    nano_cpus: int | None = None
    use_gpu: bool = False
    gpu_count: int = -1


@dataclass(frozen=True, slots=True)
class Note:
    """`published` are the ports of this machine by those of the container."""

    wishes: Wishes
    image: str
    published: Mapping[int, int]

    def __str__(self) -> str:
        return _NOTES.dump_json(self).decode()

    @classmethod
    def read(cls, text: str) -> "Note | None":
        """None for what nobody of us wrote."""
        try:
            return _NOTES.validate_json(text)
        except ValidationError:
            return None


_NOTES = TypeAdapter(Note)
