"""The catalog over HTTP."""

from tests.api.conftest import House


async def test_the_catalog_is_given_as_files(stocked: House) -> None:
    catalog = (await stocked.http.get("/catalog")).json()
    assert [*catalog] == ["registry.json", "sources.json"]
    assert [tool["tool_id"] for tool in catalog["registry.json"]["tools"]] == ["echo", "image_compress_api", "weather"]
    assert catalog["sources.json"]["sources"]["weather"][0]["remote_api_key"] == "secret:WEATHER_KEY"
