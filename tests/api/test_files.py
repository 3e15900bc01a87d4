"""Files in and out."""

from email.message import Message
from pathlib import Path

import pytest

from tests.api.conftest import LIMITS, House
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


@pytest.mark.parametrize("kind", ["nonsense", "text/html; charset=évil", "a/b\x7f", "x" * 300 + "/y", ""])
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


async def test_bytes_that_are_gone_are_said_to_be(house: House) -> None:
    file = await put(house)
    house.files.path(file).unlink()
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
