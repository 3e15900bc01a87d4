"""Python's garbage collector, set for a process of many objects that stay and requests of many that do not."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_NEW_OBJECTS = 20_000
"""So many are made before it looks at them; one request of many values makes a hundred thousand."""


@contextmanager
def paused() -> Generator[None]:
    """While the program is loaded: all that is made then stays, and walking it again and again takes a quarter of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def spare_what_stays() -> None:
    """To be called when everything is started: it would walk all of that, for a third of a second, several times in a large request."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
