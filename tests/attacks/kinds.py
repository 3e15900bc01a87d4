"""Every kind of attack there is: one file and one line each."""

from tests.attacks import bombs, content, folders, requests, schemas, text, values
from tests.attacks.attack import Kind

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (schemas.KIND, bombs.KIND, text.KIND, values.KIND, folders.KIND, content.KIND, requests.KIND)
