"""Tunes Python's garbage collector for a process with many lasting objects, and requests with many short-lived ones."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_NEW_OBJECTS = 20_000
"""The collector runs after this many new objects. One request with many values makes a hundred thousand."""


@contextmanager
def paused() -> Generator[None]:
    """No collection while the program is loaded: these objects stay, and walking them takes a quarter of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def spare_what_stays() -> None:
    """Exclude the objects of a started service. Walking them would take a third of a second, several times in a large request."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
