"""The page that shows the API."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.api.conftest import House


async def test_the_page_needs_nothing_from_elsewhere(house: "House") -> None:
    page = (await house.http.get("/docs")).text
    linked = re.findall(r"""(?:src|href)="([^"]+)\"""", page)
    assert linked
    assert [address for address in linked if not address.startswith("/docs/static/")] == []
    for address in linked:
        assert (await house.http.get(address)).status_code == 200
    assert "/openapi.json" in page
