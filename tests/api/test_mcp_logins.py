"""Logins at MCP servers: begun, finished by a browser, renewed, refused; and what is not shown of them."""

import asyncio
from collections.abc import Callable, Generator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl, JsonValue
from sqlalchemy import select, table, text
from starlette.responses import JSONResponse, RedirectResponse, Response

from engine.runtimes.failures import NotSent
from engine.runtimes.mcp.oauth.logins import LOGIN_REQUIRED
from engine.store.database import Database
from engine.store.mcp_servers import McpServerRows
from tests.api.conftest import BASE_URL, House, browse, logins_at, reached_by, registered_servers, with_doors
from tests.api.test_mcp_servers import refused, register, secrets_in
from tests.mcp_servers.authorized import Authorized, authorized, visited
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.mcp_oauth import McpOAuth
from toolagent.contracts.mcp_servers import McpServer, McpServerSpec, McpTransport
from toolagent.contracts.sources import McpSource


@pytest.fixture
def site() -> Generator[Authorized]:
    with authorized(own_clients={"robot": "the-robots-secret"}) as site:
        yield site


async def shown(house: House, name: str = "far") -> McpServer:
    return McpServer.model_validate_json((await house.http.get(f"/mcp_servers/{name}")).content)


async def begun(house: House, site: Authorized, **told: JsonValue) -> McpServer:
    return McpServer.model_validate_json((await register(house, "far", url=site.url, **told)).content)


async def returned(house: House, login_url: str | None) -> httpx.Response:
    """The last page of the browser."""
    assert login_url is not None
    return await house.http.get(await visited(login_url))


async def logged_in(house: House, site: Authorized, **told: JsonValue) -> McpServer:
    answer = await returned(house, (await begun(house, site, **told)).login_url)
    assert answer.status_code == 200, answer.text
    return await shown(house)


async def dumped(database: Database) -> str:
    async with database.read() as connection:
        tables = (await connection.scalars(text("SELECT name FROM sqlite_master WHERE type = 'table'"))).all()
        return str([(await connection.execute(select(text("*")).select_from(table(name)))).all() for name in tables])


async def test_a_server_that_wants_a_login_is_kept_and_has_its_tools_after_it(house: House, site: Authorized) -> None:
    server = await begun(house, site)
    assert (server.login_required, server.tool_ids, server.login_until is not None) == (True, (), True)
    assert "toolagent mcp login far" in server.error
    assert await shown(house) == server
    asked = parse_qs(urlsplit(server.login_url or "").query)
    assert (asked["code_challenge_method"], asked["redirect_uri"], asked["resource"]) == (
        ["S256"],
        [f"{BASE_URL}/oauth/callback"],
        [site.url],
    )
    page = await returned(house, server.login_url)
    assert (page.status_code, "far, which has 1 tools" in page.text) == (200, True), page.text
    after = await shown(house)
    assert (after.login_required, after.login_url, after.tool_ids, after.error) == (False, None, ("far_whoami",), "")


async def test_a_login_is_finished_once(house: House, site: Authorized) -> None:
    location = await visited((await begun(house, site)).login_url or "")
    answers = await asyncio.gather(*(house.http.get(location) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "other"}, "not known"),
        ({"state": ""}, "not known"),
        ({"code": "other"}, "Token exchange failed"),
        ({"code": ""}, "gave no code"),
        ({"iss": "https://other.example"}, "iss mismatch"),
        ({"code": "", "error": "access_denied", "error_description": "<b>no</b>"}, "access_denied &lt;b&gt;no&lt;/b&gt;"),
    ],
)
async def test_what_a_browser_brings_is_checked(house: House, site: Authorized, change: dict[str, str], said: str) -> None:
    location = httpx.URL(await visited((await begun(house, site)).login_url or ""))
    page = await house.http.get(location.copy_merge_params(change))
    assert (page.status_code, page.headers["content-type"], said in page.text) == (400, "text/html; charset=utf-8", True), page.text
    assert (await shown(house)).login_required


async def test_a_login_whose_time_is_over_is_shown_no_more_and_leads_nowhere(house: House, site: Authorized, database: Database) -> None:
    login_url = (await begun(house, site)).login_url
    async with database.write() as connection:
        await connection.execute(text("UPDATE mcp_logins SET login_until = '2026-11-26T00:00:00.000000+00:00'"))
    server = await shown(house)
    assert (server.login_required, server.login_url, server.login_until) == (True, None, None)
    page = await returned(house, login_url)
    assert (page.status_code, "has expired" in page.text) == (400, True)


async def test_a_newer_login_takes_the_place_of_an_older_one_and_the_old_tokens_stay_until_then(house: House, site: Authorized) -> None:
    await logged_in(house, site)
    first = (await house.http.post("/mcp_servers/far/login")).json()
    second = (await house.http.post("/mcp_servers/far/login")).json()
    assert (await returned(house, first["login_url"])).status_code == 400
    assert (await house.http.post("/mcp_servers/far/refresh")).json()["error"] == ""
    assert (await returned(house, second["login_url"])).status_code == 200


async def test_the_return_needs_no_key_and_leads_to_the_public_url(house: House, site: Authorized) -> None:
    async with browse(with_doors(house, api_key="k", public_url="https://tools.example/")) as http:
        answer = await http.post("/mcp_servers", json={"name": "far", "url": site.url}, headers={"Authorization": "Bearer k"})
        location = httpx.URL(await visited(answer.json()["login_url"]))
        assert str(location).startswith("https://tools.example/oauth/callback?")
        assert (await http.get(f"/oauth/callback?{location.query.decode()}")).status_code == 200


async def test_tokens_are_in_no_answer_record_or_row(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    location = await visited((await begun(house, site)).login_url or "")
    page = await house.http.get(location)
    called = await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami"))
    assert "with ***" in str(called)
    said = f"{await dumped(database)} {page.text} {(await house.http.get('/mcp_servers')).text} {called}"
    assert site.doorman.secrets
    assert [secret for secret in site.doorman.secrets if secret in said] == []


async def test_two_who_renew_at_once_lose_no_token(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    await logged_in(house, site)
    site.expire()
    entry = await house.registry.entry("far_whoami")
    hosts = [logins_at(database, tmp_path) for _ in range(4)]
    answers = await asyncio.gather(*(reached_by(host, entry) for host in hosts for _ in range(3)))
    assert (len(answers), site.doorman.refreshed, site.doorman.reused) == (12, 1, 0)
    site.expire()
    await reached_by(hosts[0], entry)
    assert site.doorman.refreshed == 2


async def test_a_token_is_renewed_before_it_expires(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    site.doorman.lasts_s = 5
    await logged_in(house, site)
    await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami"))
    assert site.doorman.refreshed >= 1


async def test_what_is_renewed_no_more_needs_a_login_again(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    await logged_in(house, site)
    site.expire()
    site.doorman.refresh.clear()
    with pytest.raises(NotSent, match="toolagent mcp login far") as failure:
        await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami"))
    assert (failure.value.error_type, failure.value.details["reason"]) == (ErrorType.DEPENDENCY_ERROR, LOGIN_REQUIRED)
    assert (await shown(house)).login_required
    again = (await house.http.post("/mcp_servers/far/login")).json()
    assert (await returned(house, again["login_url"])).status_code == 200
    assert not (await shown(house)).login_required


async def test_an_authorization_server_that_is_away_takes_no_login_away(
    house: House, site: Authorized, database: Database, tmp_path: Path
) -> None:
    await logged_in(house, site)
    site.expire()
    site.instead["/token"] = Response("oops", 503)
    with pytest.raises(NotSent) as failure:
        await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami"))
    assert (failure.value.error_type, (await shown(house)).login_required) == (ErrorType.UNAVAILABLE, False)
    site.instead.clear()
    await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami"))


async def test_a_removed_server_leaves_no_tokens_and_its_login_leads_nowhere(house: House, site: Authorized, database: Database) -> None:
    server = await logged_in(house, site)
    again = (await house.http.post("/mcp_servers/far/login")).json()
    await house.http.delete("/mcp_servers/far")
    async with database.read() as connection:
        assert (await connection.scalars(text("SELECT name FROM mcp_logins"))).all() == []
    assert (await returned(house, again["login_url"])).status_code == 400
    assert server.tool_ids == ("far_whoami",)


async def test_a_token_is_shown_to_no_server_that_takes_the_name_over(
    house: House, site: Authorized, database: Database, tmp_path: Path
) -> None:
    spec = McpServerSpec(type=McpTransport.STREAMABLE_HTTP, url=site.url)
    rows, servers = McpServerRows(database), registered_servers(database, tmp_path)
    await rows.bring_in({"far": spec}, ())
    assert (await servers.refresh("far")).login_required
    await returned(house, (await house.http.post("/mcp_servers/far/login")).json()["login_url"])
    with authorized() as other:
        await rows.bring_in({"far": spec.model_copy(update={"url": other.url})}, ())
        server = await servers.refresh("far")
        assert (server.login_required, other.doorman.secrets, "POST /mcp" in other.asked) == (True, set(), True)


async def test_a_client_logs_in_as_itself_without_a_browser(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    oauth: JsonValue = {"client_id": "robot", "client_secret": "the-robots-secret", "grant": "client_credentials"}
    answer = await register(house, "far", url=site.url, oauth=oauth)
    server = McpServer.model_validate_json(answer.content)
    assert (server.tool_ids, server.login_required, "the-robots-secret" in answer.text) == (("far_whoami",), False, False)
    assert "the-robots-secret" in await secrets_in(tmp_path)
    site.expire()
    assert "client robot" in str(await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami")))
    await house.http.delete("/mcp_servers/far")
    assert await secrets_in(tmp_path) == ""


async def test_a_client_that_is_refused_names_the_field(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    oauth: JsonValue = {"client_id": "robot", "client_secret": "another-secret", "grant": "client_credentials"}
    assert refused(await register(house, "far", url=site.url, oauth=oauth)) == (422, "invalid_request", "oauth")
    assert ((await house.http.get("/mcp_servers")).json()["servers"], await secrets_in(tmp_path)) == ([], "")
    assert "another-secret" not in await dumped(database)


async def test_a_given_client_is_used_and_shown_to_its_authorization_server_only(
    house: House, site: Authorized, database: Database, tmp_path: Path
) -> None:
    redirect = AnyUrl(f"{BASE_URL}/oauth/callback")
    site.doorman.clients["known"] = OAuthClientInformationFull(
        client_id="known",
        client_secret="known-secret",  # noqa: S106 - of a test
        redirect_uris=[redirect],
        scope="tickets",
        token_endpoint_auth_method="client_secret_basic",  # noqa: S106 - of a test
    )
    oauth: dict[str, JsonValue] = {"client_id": "known", "client_secret": "known-secret"}
    assert (await logged_in(house, site, oauth=oauth)).tool_ids == ("far_whoami",)
    site.expire()
    await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami"))
    assert (site.doorman.refreshed, "POST /register" in site.asked) == (1, False)
    await house.http.delete("/mcp_servers/far")
    other = await register(house, "far", url=site.url, oauth={**oauth, "issuer": "https://other.example"})
    assert refused(other) == (422, "invalid_request", "oauth")


@pytest.mark.parametrize(
    ("oauth", "more", "field"),
    [
        ({"client_id": "x", "grant": "client_credentials"}, {}, "oauth"),
        ({"client_id": "x"}, {"headers": {"Authorization": "Bearer abcdefgh12"}}, "oauth"),
        ({"client_id": "x", "scopes": ["a b"]}, {}, "oauth"),
        ({"client_id": "x"}, {"url": "http://far.example/mcp"}, "url"),
        ({"client_id": ""}, {}, "oauth.client_id"),
        ({"client_id": "x", "clientSecret": "y"}, {}, "oauth.clientSecret"),
    ],
)
async def test_credentials_of_the_wrong_form_name_the_field(house: House, oauth: JsonValue, more: dict[str, JsonValue], field: str) -> None:
    answer = await house.http.post("/mcp_servers", json={"name": "far", "url": "https://far.example/mcp", "oauth": oauth, **more})
    assert refused(answer) == (422, "invalid_request", field)


def _metadata(base: str, **other: str) -> Response:
    said = {
        "issuer": f"{base}/",
        "authorization_endpoint": f"{base}/authorize",
        "token_endpoint": f"{base}/token",
        "response_types_supported": ["code"],
    }
    return JSONResponse({**said, "registration_endpoint": f"{base}/register", **other})


LIES: dict[str, tuple[Callable[[str], Response], int]] = {
    "another issuer": (lambda base: _metadata(base, issuer="https://other.example"), 502),
    "large": (lambda _: Response(b" " * 10_000_000, media_type="application/json"), 502),
    "no json": (lambda _: Response("<html>"), 502),
    "endless redirects": (lambda base: RedirectResponse(f"{base}/.well-known/oauth-authorization-server"), 502),
    "a private registration": (lambda base: _metadata(base, registration_endpoint="https://10.0.0.1/register"), 403),
    "registration in the open": (lambda base: _metadata(base, registration_endpoint="http://far.example/register"), 403),
    "a browser in the open": (lambda base: _metadata(base, authorization_endpoint="http://far.example/authorize"), 403),
    "a host that looks like another": (lambda base: _metadata(base, authorization_endpoint="https://good.example@far.example/"), 403),
}


@pytest.mark.parametrize("lie", LIES)
async def test_an_authorization_server_that_lies_is_told_and_nothing_is_kept(house: House, site: Authorized, lie: str) -> None:
    answer, status = LIES[lie]
    base = site.url.removesuffix("/mcp")
    site.instead["/.well-known/oauth-authorization-server"] = answer(base)
    if lie in {"large", "no json", "endless redirects"}:
        site.instead["/register"] = Response("no", 404)
    told = await register(house, "far", url=site.url)
    assert (told.status_code, (await house.http.get("/mcp_servers")).json()["servers"]) == (status, []), told.text


async def test_a_token_without_a_time_is_none(house: House, site: Authorized) -> None:
    login_url = (await begun(house, site)).login_url
    site.instead["/token"] = Response('{"access_token": "a", "token_type": "bearer", "expires_in": 1' + "0" * 400 + "}")
    page = await returned(house, login_url)
    assert (page.status_code, "`expires_in` is no time" in page.text) == (400, True)


async def test_a_private_token_endpoint_gets_no_code(house: House, site: Authorized) -> None:
    base = site.url.removesuffix("/mcp")
    site.instead["/.well-known/oauth-authorization-server"] = _metadata(base, token_endpoint="https://10.0.0.1/token")  # noqa: S106 - a URL
    page = await returned(house, (await begun(house, site)).login_url)
    assert (page.status_code, "10.0.0.1" in page.text, (await shown(house)).login_required) == (400, True, True)


async def test_a_server_that_wants_no_login_or_has_a_key_has_none(house: House, site: Authorized, database: Database) -> None:
    headers = {"Authorization": "Bearer secret:FAR"}
    specs = {"far": McpServerSpec(url=site.url), "keyed": McpServerSpec(url=site.url, headers=headers)}
    await McpServerRows(database).bring_in(specs, ())
    assert refused(await house.http.post("/mcp_servers/keyed/login")) == (422, "invalid_request", "name")
    answer = await register(house, "other", url=site.url, headers={"Authorization": "Bearer an-old-key"})
    assert (answer.status_code, "refuses `initialize`. It answered with status 401" in answer.text) == (502, True)
    site.instead["/mcp"] = Response("", 200)
    assert refused(await house.http.post("/mcp_servers/far/login")) == (422, "invalid_request", "url")
    assert refused(await house.http.post("/mcp_servers/none/login")) == (404, "server_not_found", "")


async def test_one_that_refuses_calls_only_is_logged_in_at_too(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    source = McpSource(tool_name="-", url=site.url, server="far")
    await McpServerRows(database).bring_in({"far": McpServerSpec(url=site.url)}, ())
    with pytest.raises(NotSent):
        await logins_at(database, tmp_path).of(source).renewed(None, httpx2.Response(401))
    site.instead["/mcp"] = Response("", 200)
    login_url = (await house.http.post("/mcp_servers/far/login")).json()["login_url"]
    site.instead.clear()
    assert (await returned(house, login_url)).status_code == 200


async def test_tokens_that_are_all_refused_need_a_login_again(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    await logged_in(house, site)
    site.instead["/mcp"] = Response("", 401)
    with pytest.raises(NotSent, match="toolagent mcp login far") as failure:
        await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami"))
    assert (failure.value.details["reason"], (await shown(house)).login_required) == (LOGIN_REQUIRED, True)
    assert site.doorman.refreshed == 1


async def test_a_login_of_one_client_is_none_of_another(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    redirect = AnyUrl(f"{BASE_URL}/oauth/callback")
    for client in ("first", "second"):
        told = OAuthClientInformationFull(client_id=client, redirect_uris=[redirect], scope="tickets", token_endpoint_auth_method="none")  # noqa: S106 - none
        site.doorman.clients[client] = told
    rows, servers = McpServerRows(database), registered_servers(database, tmp_path)
    for client in ("first", "second"):
        spec = McpServerSpec(type=McpTransport.STREAMABLE_HTTP, url=site.url, oauth=McpOAuth(client_id=client))
        await rows.bring_in({"far": spec}, ())
        assert (await servers.refresh("far")).login_required
        await returned(house, (await house.http.post("/mcp_servers/far/login")).json()["login_url"])
        answer = await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami"))
        assert f"client {client} " in str(answer)


@pytest.mark.parametrize(
    ("answer", "error_type", "is_over"),
    [
        (Response('{"error": "bad_refresh_token"}', 200), ErrorType.DEPENDENCY_ERROR, True),
        (Response('{"error": "invalid_grant"}', 400), ErrorType.DEPENDENCY_ERROR, True),
        (Response('{"error": "temporarily_unavailable"}', 200), ErrorType.UNAVAILABLE, False),
        (Response('{"error": "slow_down"}', 400), ErrorType.UNAVAILABLE, False),
        (Response("there is no such page", 404), ErrorType.UNAVAILABLE, False),
    ],
)
async def test_only_an_authorization_server_that_refuses_to_renew_ends_a_login(
    house: House, site: Authorized, database: Database, tmp_path: Path, answer: Response, error_type: ErrorType, is_over: bool
) -> None:
    await logged_in(house, site)
    site.expire()
    site.instead["/token"] = answer
    with pytest.raises(NotSent) as failure:
        await reached_by(logins_at(database, tmp_path), await house.registry.entry("far_whoami"))
    assert (failure.value.error_type, (await shown(house)).login_required) == (error_type, is_over)


async def test_a_renewal_that_is_under_way_is_waited_for(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    await logged_in(house, site)
    site.expire()
    logins, entry = logins_at(database, tmp_path), await house.registry.entry("far_whoami")
    call = asyncio.create_task(reached_by(logins, entry))
    while "POST /token" not in site.asked[-1]:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    call.cancel()
    await logins.close()
    assert "client " in str(await reached_by(logins_at(database, tmp_path), entry))
    assert site.doorman.refreshed == 1
