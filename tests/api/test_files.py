"""Uploads and downloads of files."""

from dataclasses import replace
from email.message import Message
from pathlib import Path

import httpx
import pytest

from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from tests.api.conftest import LIMITS, House
from tests.api.serving import reached
from toolagent.contracts.records import StoredFile

PAGE = b"<script>alert(1)</script>"


async def put(house: House, name: str = "page.html", content: bytes = PAGE, kind: str = "text/html") -> StoredFile:
    answer = await house.http.post("/files", files={"file": (name, content, kind)})
    assert answer.status_code == 201
    return StoredFile.model_validate_json(answer.content)


async def test_what_is_put_comes_back_as_a_download(house: House) -> None:
    answer = await house.http.post("/files", files={"file": ("春天 1; é.html", PAGE, "text/html")})
    file = StoredFile.model_validate_json(answer.content)
    assert (answer.status_code, answer.headers["location"]) == (201, f"/files/{file.file_id}")
    assert (file.name, file.media_type, file.size) == ("春天 1; é.html", "text/html", len(PAGE))
    got = await house.http.get(answer.headers["location"])
    header = Message()
    header["content-disposition"] = got.headers["content-disposition"]
    assert (got.status_code, got.content) == (200, PAGE)
    assert (header.get_content_disposition(), header.get_filename()) == ("attachment", "春天 1; é.html")
    assert got.headers["content-type"].startswith("text/html")
    assert (got.headers["x-content-type-options"], got.headers["content-security-policy"]) == ("nosniff", "sandbox")


async def test_the_same_file_is_one_file(house: House) -> None:
    assert await put(house) == await put(house)


async def test_an_empty_file_is_a_file(house: House) -> None:
    file = await put(house, content=b"")
    assert (await house.http.get(f"/files/{file.file_id}")).content == b""


@pytest.mark.parametrize("kind", ["nonsense", "text/html; charset=évil", "a/b\x7f", "x" * 300 + "/y", "x" * 100 + "/" + "y" * 100, ""])
async def test_a_media_type_that_is_none_is_guessed_from_the_name(house: House, kind: str) -> None:
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: ' + kind.encode("utf-8")
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = await house.http.post("/files", content=head + b"\r\n\r\nx\r\n--b--\r\n", headers=headers)
    assert answer.status_code == 201
    assert answer.json()["media_type"] in {"text/plain", "text/html"}
    assert (await house.http.get(answer.headers["location"])).status_code == 200


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\Windows\\x.txt", "a\x01b.txt", "😀.txt", "..", "x" * 1000])
async def test_a_name_is_only_a_name(house: House, name: str) -> None:
    file = await put(house, name=name)
    assert Path(file.name).name == file.name
    assert (await house.http.get(f"/files/{file.file_id}")).status_code == 200


async def test_too_large_a_file_is_refused(house: House) -> None:
    for size in (LIMITS.max_file_bytes + 1, LIMITS.max_file_bytes + 100_000):
        answer = await house.http.post("/files", files={"file": ("a.bin", b"x" * size)})
        assert (answer.status_code, answer.json()["type"]) == (413, "body_too_large")
    assert (await put(house, content=b"x" * LIMITS.max_file_bytes)).size == LIMITS.max_file_bytes


@pytest.mark.parametrize("file_id", ["file_" + "0" * 32, "x", "..%2F..%2Fetc", "file_%00", "file_" + "A" * 32])
async def test_an_unknown_file_is_a_problem(house: House, file_id: str) -> None:
    answer = await house.http.get(f"/files/{file_id}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


async def test_bytes_that_are_gone_are_said_to_be(house: House, tmp_path: Path) -> None:
    file = await put(house)
    (tmp_path / "files" / file.sha256[:2] / file.sha256).unlink()
    answer = await house.http.get(f"/files/{file.file_id}")
    assert (answer.status_code, answer.json()["type"]) == (404, "file_not_found")


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{}", "application/json", 415),
        (b"file=x", "application/x-www-form-urlencoded", 415),
        (b"x", "multipart/form-data", 400),
        (b"x", "multipart/form-data; boundary=b", 400),
        (b"--b", "multipart/form-data; boundary=b", 422),
        (b"--b--\r\n", "multipart/form-data; boundary=b", 422),
        (b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n", "multipart/form-data; boundary=b", 400),
        (b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n', "multipart/form-data; boundary=b", 400),
        (
            2 * b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nx\r\n' + b"--b--\r\n",
            "multipart/form-data; boundary=b",
            400,
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="other"; filename="x"\r\n\r\nx\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
            422,
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="\xff\xfe"\r\n\r\nx\r\n--b--\r\n',
            "multipart/form-data; boundary=b; charset=utf-16",
            422,
        ),
    ],
)
async def test_a_form_that_is_none_is_a_problem(house: House, content: bytes, kind: str, status: int) -> None:
    answer = await house.http.post("/files", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert (status == 400) == ("curl -F file=@" in answer.json()["detail"])


TEN = b"0123456789"


@pytest.mark.parametrize(
    ("wanted", "part", "where"),
    [
        ("bytes=0-0", b"0", "bytes 0-0/10"),
        ("bytes=2-5", b"2345", "bytes 2-5/10"),
        ("bytes=7-", b"789", "bytes 7-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=-99", TEN, "bytes 0-9/10"),
        ("bytes=9-99", b"9", "bytes 9-9/10"),
        ("BYTES=1-1", b"1", "bytes 1-1/10"),
    ],
)
async def test_a_range_is_answered_with_that_part(house: House, wanted: str, part: bytes, where: str) -> None:
    file = await put(house, "ten.txt", TEN)
    got = await house.http.get(f"/files/{file.file_id}", headers={"Range": wanted})
    assert (got.status_code, got.content, got.headers["content-range"]) == (206, part, where)
    assert got.headers["content-length"] == str(len(part))


@pytest.mark.parametrize("wanted", ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"])
async def test_a_range_beyond_the_end_is_a_problem_that_says_the_size(house: House, wanted: str) -> None:
    file = await put(house, "ten.txt", TEN)
    for ask in (house.http.get, house.http.head):
        got = await ask(f"/files/{file.file_id}", headers={"Range": wanted})
        assert (got.status_code, got.headers["content-range"], got.headers["content-type"]) == (
            416,
            "bytes */10",
            "application/problem+json",
        )


async def test_no_range_of_an_empty_file_can_be_had(house: House) -> None:
    file = await put(house, "empty.txt", b"")
    assert (await house.http.get(f"/files/{file.file_id}", headers={"Range": "bytes=0-"})).status_code == 416


@pytest.mark.parametrize("wanted", ["bytes=5-2", "bytes=-", "bytes", "chars=0-1", "bytes=0-1,4-5", "bytes=a-b", ""])
async def test_a_range_that_is_none_is_answered_with_everything(house: House, wanted: str) -> None:
    file = await put(house, "ten.txt", TEN)
    got = await house.http.get(f"/files/{file.file_id}", headers={"Range": wanted})
    assert (got.status_code, got.content) == (200, TEN)
    assert (got.headers["accept-ranges"], got.headers["content-length"]) == ("bytes", "10")


async def test_a_client_that_has_the_file_is_told_so(house: House) -> None:
    file = await put(house, "ten.txt", TEN)
    etag = f'"{file.sha256}"'
    for said in (etag, f'"other", W/{etag}', "*"):
        got = await house.http.get(f"/files/{file.file_id}", headers={"If-None-Match": said})
        assert (got.status_code, got.content, got.headers["etag"]) == (304, b"", etag)
    assert (await house.http.get(f"/files/{file.file_id}", headers={"If-None-Match": '"other"'})).status_code == 200


async def test_a_download_is_continued_only_if_the_file_is_the_same(house: House) -> None:
    file = await put(house, "ten.txt", TEN)
    same = await house.http.get(f"/files/{file.file_id}", headers={"Range": "bytes=5-", "If-Range": f'"{file.sha256}"'})
    other = await house.http.get(f"/files/{file.file_id}", headers={"Range": "bytes=5-", "If-Range": '"other"'})
    assert (same.status_code, same.content, other.status_code, other.content) == (206, b"56789", 200, TEN)


async def test_head_says_what_get_would_without_the_bytes(house: House) -> None:
    file = await put(house, "ten.txt", TEN)
    got, head = [await ask(f"/files/{file.file_id}") for ask in (house.http.get, house.http.head)]
    assert (head.status_code, head.content, dict(head.headers)) == (200, b"", dict(got.headers))
    missing = await house.http.head("/files/file_" + "0" * 32)
    assert missing.status_code == 404


def damage(tmp_path: Path, file: StoredFile) -> None:
    kept = tmp_path / "files" / file.sha256[:2] / file.sha256
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")


@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=0-3"}])
async def test_damaged_bytes_are_never_given_out_and_an_upload_replaces_them(house: House, tmp_path: Path, headers: dict[str, str]) -> None:
    file = await put(house, "ten.txt", TEN)
    damage(tmp_path, file)
    for _ in range(2):
        got = await house.http.get(f"/files/{file.file_id}", headers=headers)
        assert (got.status_code, got.json()["type"]) == (503, "unavailable")
        assert got.json()["details"] == {"cause": "content_damaged", "file_id": file.file_id}
        assert file.file_id in got.json()["detail"]
    assert (await house.http.head(f"/files/{file.file_id}")).status_code == 503
    assert await put(house, "ten.txt", TEN) == file
    assert (await house.http.get(f"/files/{file.file_id}")).content == TEN


async def download(http: httpx.AsyncClient, file: StoredFile, received: list[bytes]) -> None:
    async with http.stream("GET", f"/files/{file.file_id}") as got:
        assert (got.status_code, got.headers["content-length"]) == (200, str(file.size))
        async for piece in got.aiter_bytes():
            received.append(piece)  # noqa: PERF401 - those that came before it breaks


async def test_a_file_that_is_damaged_at_its_end_breaks_the_connection_before_its_last_byte(
    house: House, database: Database, tmp_path: Path
) -> None:
    limits = replace(LIMITS, max_file_bytes=5_000_000)
    files = FileStore(database, FolderContent(tmp_path / "files"), tmp_path / "files", limits.max_file_bytes)
    async with reached(replace(house.dependencies, files=files, limits=limits)) as http:
        stored = await http.post("/files", files={"file": ("large.bin", b"x" * 3_000_000)})
        file = StoredFile.model_validate_json(stored.content)
        damage(tmp_path, file)
        received: list[bytes] = []
        with pytest.raises(httpx.RemoteProtocolError):
            await download(http, file, received)
        assert 0 < len(b"".join(received)) < 3_000_000
        assert (await http.get(f"/files/{file.file_id}")).status_code == 503
