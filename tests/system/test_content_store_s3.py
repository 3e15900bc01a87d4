"""A service with its files in S3: uploads, large results, and errors while the server is away."""

from pathlib import Path

from tests.s3 import s3_server
from tests.system.conftest import MakeService
from tests.system.service_process import run_tool
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.references import ResultReference

KEYS = {"SECRET_S3_ACCESS_KEY_ID": "an id", "SECRET_S3_SECRET_ACCESS_KEY": "a key that nobody may see"}


def test_files_and_large_results_live_in_a_bucket(make_service: MakeService, effects: Path, tmp_path: Path) -> None:
    with s3_server(tmp_path) as s3:
        place = s3.make_bucket("files")
        service = make_service(
            CONTENT_STORE="s3",
            S3_BUCKET=place.bucket,
            S3_ENDPOINT=s3.endpoint,
            **KEYS,
        )
        service.start()
        uploaded = service.http.post("/files", files={"file": ("a.txt", b"0123456789")}).raise_for_status().headers["location"]
        part = service.http.get(uploaded, headers={"Range": "bytes=3-5"})
        assert (part.status_code, part.content) == (206, b"345")
        _, result = run_tool(service.http, "versatile", {"mode": "flood", "bytes": 20_000_000})
        reference = ResultReference.model_validate(result.result)
        assert len(service.http.get(reference.file).content) == reference.size == 20_000_002
        service.http.post("/tools/once/start").raise_for_status()  # its project is in the bucket too
        s3.kill()
        for answer in (service.http.get(uploaded), service.http.post("/files", files={"file": ("b.txt", b"b")})):
            assert (answer.status_code, answer.json()["type"], answer.json()["details"]) == (503, "unavailable", {"cause": "content_store"})
        status, result = run_tool(service.http, "once", {"effects": str(effects), "line": "x" * 300_000})
        assert (status, result.error_type, result.error and result.error.details) == (
            502,
            ErrorType.EXECUTION_ERROR,
            {"cause": "store_unavailable", "outcome": "executed"},
        )
        assert len(effects.read_text("ascii").split()) == 1
        assert "nobody may see" not in service.output
