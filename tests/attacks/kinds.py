"""Every kind of attack there is: one file and one line each."""

from tests.attacks import bombs, schemas, values
from tests.attacks.attack import Kind

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (schemas.KIND, values.KIND, bombs.KIND)
