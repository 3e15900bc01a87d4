"""Reads the tools of a table from its URL."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import JsonValue
from pydantic_core import to_json

from engine.external.entries import Listing, Table, is_same_server, require_few
from engine.external.fetching import Fetched, OtherStatusError, TableFetch
from engine.external.forms import FORMS, tool_agent
from engine.making.openapi.documents.document import DocumentRefused, parsed
from engine.making.openapi.documents.reading import SMALL_BYTES
from toolagent.contracts.external_tables import TableForm
from toolagent.core.failures import TableRefusedError

_URL = "tools_url"
_NO_SEARCH = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
_FORMS = "the list of a Tool Agent (`GET /tools`), KnowHub's resources (`GET /api/resource`), or an OpenAPI document"


@dataclass(frozen=True, slots=True)
class ReadTable:
    form: TableForm
    listing: Listing


class TableReader:
    """Parses and checks in threads."""

    def __init__(self, fetch: TableFetch) -> None:
        self._fetch = fetch

    async def read(self, source: str, url: str, secret: str | None, key: str | None) -> ReadTable:
        """`secret` is the name of the key. Raises TableRefusedError, TableNotReachedError."""
        fetched = await self._fetch.get(url, key)
        document = await asyncio.to_thread(_document, fetched)
        form = next((form for form, (is_one, _) in FORMS.items() if is_one(document)), None)
        if form is None:
            raise TableRefusedError(_URL, f"What it answers is not understood. It has to be {_FORMS}.")
        if form is TableForm.TOOL_AGENT and tool_agent.wants(document):
            shown = key if is_same_server(fetched.url, url) else None
            document = tool_agent.merged(document, await self._schemas(fetched.url, shown))
        table = Table(source, fetched.url, url, secret)
        listing = await asyncio.to_thread(FORMS[form][1], document, table)
        require_few(len(listing.entries))
        return ReadTable(form, listing)

    async def _schemas(self, url: str, key: str | None) -> JsonValue:
        """All tools with schemas, from its search; None if an older service has no search. Raises TableRefusedError."""
        try:
            found = await self._fetch.post(f"{tool_agent.service_of(url)}/search_tools", key, to_json({}))
            return await asyncio.to_thread(_document, found)
        except TableRefusedError as refusal:
            if isinstance(refusal, OtherStatusError) and refusal.status in _NO_SEARCH:
                return None
            raise TableRefusedError(_URL, f"Its schemas, from /search_tools: {refusal}", is_private=refusal.is_private) from refusal


def _document(fetched: Fetched) -> JsonValue:
    """Raises TableRefusedError. Blocks."""
    text = fetched.body.decode("utf-8-sig", "replace")
    is_json = text.lstrip()[:1] in {"{", "["}
    if not is_json and len(text) > SMALL_BYTES:
        message = f"It is neither a JSON object nor a list, and more than {SMALL_BYTES >> 10} KiB. Give the URL of a JSON document."
        raise TableRefusedError(_URL, message)
    try:
        return parsed(text, is_json=is_json)
    except DocumentRefused as refusal:
        raise TableRefusedError(_URL, f"What it answers cannot be read: {str(refusal)[:300]}") from refusal
