"""The dependencies that machine-written code may have."""

from datetime import timedelta

import pytest

from tests.making.dependencies.conftest import NOW, Gate, Index, Upload
from toolagent_service.contracts.dependency_policy import DependencyVerdict, RefusalKind

INVENTED = (
    "flask-smart-auth-helper", "pandas-ai-cleaner-pro", "openai-json-schema-tools", "fastapi-turbo-cache", "tensor-image-resizer",
    "easy-pdf-table-extract", "langchain-memory-vault", "quick-sentiment-scorer", "llm-output-sanitizer", "auto-docstring-writer",
    "smart-url-canonical", "zipcode-geo-lookup-fast", "excel-merge-wizard", "markdown-to-slides-x", "fuzzy-address-matcher",
    "huggingface-cli-tools-x", "svg-path-optimizer-native", "async-csv-streamer", "invoice-ocr-toolkit", "weather-data-normalizer",
    "currency-rate-fetcher-io", "json-diff-visualizer", "text-summary-engine", "video-frame-sampler", "barcode-decoder-universal",
)  # fmt: skip
NEAR = (
    "reqeusts", "requestss", "request5", "requests-python", "python-requests", "nunpy", "numpyy", "pandsa", "pandass", "scikit-leam",
    "scikitlearn", "djang0", "flaask", "beautifulsuop4", "cryptograpy", "matplotllib", "pydantlc", "dateutil-python", "urlib3",
    "tensorfow",
)  # fmt: skip
YOUNG = ("brightfold", "quillhaven", "tesselmark", "orbitsmith", "lanternkey")


def refused(verdicts: tuple[DependencyVerdict, ...]) -> list[RefusalKind | None]:
    return [verdict.refusal.kind if verdict.refusal else None for verdict in verdicts]


async def kind_of(gate: Gate, requirement: str, **policy: object) -> RefusalKind | None:
    [verdict] = await gate(**policy).judge([requirement])
    return verdict.refusal.kind if verdict.refusal else None


async def test_none_of_25_invented_names_passes(gate: Gate, index: Index) -> None:
    verdicts = await gate().judge(INVENTED)
    assert len(verdicts) == 25
    assert set(refused(verdicts)) == {RefusalKind.UNKNOWN}
    assert sorted(index.asked) == sorted(INVENTED)


async def test_none_of_25_that_exist_but_are_near_misses_or_too_young_passes(gate: Gate, index: Index) -> None:
    index.packages = {name: (Upload("1.0"),) for name in NEAR} | {name: (Upload("1.0", days=3),) for name in YOUNG}
    assert len({*NEAR, *YOUNG}) == 25
    verdicts = await gate().judge((*NEAR, *YOUNG))
    assert refused(verdicts) == [RefusalKind.NEAR_MISS] * 20 + [RefusalKind.TOO_YOUNG] * 5
    assert verdicts[-1].refusal is not None
    assert "first published on 2026-05-29" in verdicts[-1].refusal.message
    assert sorted(index.asked) == sorted(YOUNG)


async def test_packages_that_are_known_and_old_pass_as_they_were_judged(gate: Gate, index: Index) -> None:
    index.packages = {name: (Upload("1.0"), Upload("2.0", days=1)) for name in ("requests", "some-honest-package")}
    verdicts = await gate().judge(["Requests [socks]>=1 ; python_version>'3.8'", "some_honest.package"])
    cutoff = NOW - timedelta(days=14)
    assert verdicts == (
        DependencyVerdict(requirement='Requests[socks]>=1; python_version > "3.8"', name="requests", not_after=cutoff),
        DependencyVerdict(requirement="some_honest.package", name="some-honest-package", not_after=cutoff),
    )


async def test_a_refusal_says_what_was_probably_meant(gate: Gate) -> None:
    [verdict] = await gate().judge(["reqeusts>=2"])
    assert verdict.refusal is not None
    assert verdict.refusal.suggestions == ("requests",)
    assert "Did you mean 'requests'?" in verdict.refusal.message


async def test_what_one_imports_is_not_the_name_of_the_package(gate: Gate, index: Index) -> None:
    index.packages = {name: (Upload("1.0"),) for name in ("cv2", "sklearn", "pil")}
    verdicts = await gate().judge(["cv2", "sklearn", "PIL"])
    assert [(verdict.refusal.kind, verdict.refusal.suggestions) for verdict in verdicts if verdict.refusal] == [
        (RefusalKind.IMPORT_NAME, ("opencv-python",)),
        (RefusalKind.IMPORT_NAME, ("scikit-learn",)),
        (RefusalKind.IMPORT_NAME, ("pillow",)),
    ]
    assert index.asked == []


@pytest.mark.parametrize(
    "requirement",
    [
        "requests @ https://user:hunter22@example.test/requests-1.0.whl",
        "https://user:hunter22@example.test/requests-1.0.whl",
        "git+https://user:hunter22@example.test/requests.git",
        "./requests",
        "../requests",
        "~/requests",
        "/tmp/requests",  # noqa: S108 - a path that is refused
        "requests-1.0-py3-none-any.whl",
        "requests.tar.gz",
        "-r requirements.txt",
        "-e .",
        "--index-url https://user:hunter22@example.test/simple",
        "requests --index-url https://user:hunter22@example.test/simple",
        "requests --extra-index-url=https://example.test",
        "--find-links=/tmp",
    ],
)
async def test_places_files_and_options_are_refused_without_repeating_a_password(gate: Gate, index: Index, requirement: str) -> None:
    [verdict] = await gate().judge([requirement])
    assert verdict.refusal is not None
    assert verdict.refusal.kind is RefusalKind.NO_NAME
    assert "hunter22" not in verdict.model_dump_json()
    assert index.asked == []


@pytest.mark.parametrize(
    "requirement", ["", " ", "requests>>2", "requests\n--index-url x", "rеquests", "a b", "requests; nonsense", "x" * 501]
)
async def test_what_is_no_requirement_is_malformed(gate: Gate, index: Index, requirement: str) -> None:
    assert await kind_of(gate, requirement) is RefusalKind.MALFORMED
    assert index.asked == []


async def test_the_policy_decides_by_patterns_of_normal_names(gate: Gate, index: Index) -> None:
    index.packages = {name: (Upload("1.0"),) for name in ("acme-tools", "acme-secret", "other")}
    judge = gate(allow=("Acme_*",), deny=("acme-secret",)).judge
    assert refused(await judge(["acme.tools", "acme_secret", "other"])) == [None, RefusalKind.DENIED, RefusalKind.DENIED]


async def test_what_is_trusted_may_be_new_and_named_like_another_but_has_to_exist(gate: Gate, index: Index) -> None:
    index.packages = {"requestz": (Upload("1.0", days=0.1),)}
    judge = gate(trusted=("requestz", "acme-*")).judge
    assert refused(await judge(["requestz", "acme-none", "requestx"])) == [None, RefusalKind.UNKNOWN, RefusalKind.NEAR_MISS]


async def test_what_is_denied_is_not_saved_by_trust(gate: Gate) -> None:
    assert await kind_of(gate, "acme", trusted=("acme",), deny=("ac*",)) is RefusalKind.DENIED


async def test_a_new_version_of_an_old_package_is_too_young_where_no_other_fits(gate: Gate, index: Index) -> None:
    index.packages = {"requests": (Upload("3.0", days=2), Upload("2.0"))}
    verdicts = await gate().judge(["requests", "requests>=3", "requests==2.0"])
    assert refused(verdicts) == [None, RefusalKind.TOO_YOUNG, None]
    assert verdicts[1].refusal is not None
    assert "2.0" in verdicts[1].refusal.message


async def test_an_old_version_does_not_make_up_for_yanked_ones(gate: Gate, index: Index) -> None:
    index.packages = {"honest-package": (Upload("1.0", yanked=True), Upload("2.0", days=2))}
    assert await kind_of(gate, "honest-package") is RefusalKind.TOO_YOUNG


async def test_versions_that_are_not_there_are_told(gate: Gate, index: Index) -> None:
    index.packages = {"requests": (Upload("2.9"), Upload("2.10"), Upload("2.1", suffix=".tar.gz"), Upload("9.9", suffix="-py2.7.egg"))}
    [verdict] = await gate().judge(["requests>=3"])
    assert verdict.refusal is not None
    assert verdict.refusal.kind is RefusalKind.NO_VERSION
    assert "2.10, 2.9, 2.1." in verdict.refusal.message


async def test_a_package_without_any_file_to_install_is_not_there(gate: Gate, index: Index) -> None:
    index.packages = {"honest-package": (Upload("1.0", suffix="-py2.7.egg"),), "other-package": ()}
    assert refused(await gate().judge(["honest-package", "other-package"])) == [RefusalKind.UNKNOWN] * 2


@pytest.mark.parametrize("json", [True, False], ids=["JSON", "HTML"])
async def test_where_no_date_is_known_the_policy_decides_but_for_popular_packages(gate: Gate, index: Index, *, json: bool) -> None:
    index.packages, index.dated, index.json = {name: (Upload("1.0"),) for name in ("honest-package", "requests")}, False, json
    assert refused(await gate().judge(["honest-package", "requests"])) == [RefusalKind.UNDATED, None]
    assert await kind_of(gate, "honest-package", undated="allow") is None


async def test_html_pages_say_what_is_yanked(gate: Gate, index: Index) -> None:
    index.packages, index.json = {"requests": (Upload("1.0", yanked=True), Upload("0.9", suffix=".tar.gz"))}, False
    assert refused(await gate().judge(["requests>=1", "requests<1"])) == [RefusalKind.NO_VERSION, None]


@pytest.mark.parametrize("away", [500, 503, 401, 403, 429])
async def test_an_index_that_is_away_is_not_a_package_that_is_not_there(gate: Gate, index: Index, away: int) -> None:
    index.away = away
    assert await kind_of(gate, "honest-package") is RefusalKind.INDEX_UNAVAILABLE
    index.away = 0
    index.packages = {"honest-package": (Upload("1.0"),)}
    assert await kind_of(gate, "honest-package") is None


async def test_the_address_of_an_index_is_in_no_message(gate: Gate, index: Index) -> None:
    address = index.address.replace("http://", "http://somebody:hunter22@")
    index.packages = {"honest-package": (Upload("1.0"),)}
    assert refused(await gate((address,)).judge(["honest-package"])) == [None]
    assert index.credentials == ["Basic c29tZWJvZHk6aHVudGVyMjI="]
    index.away = 403
    gone = "http://somebody:hunter22@127.0.0.1:9/simple"
    for where in (address, gone):
        [verdict] = await gate((where,)).judge(["other-package"])
        assert verdict.refusal is not None
        assert verdict.refusal.kind is RefusalKind.INDEX_UNAVAILABLE
        assert not [part for part in ("hunter22", "127.0.0.1", "somebody") if part in verdict.model_dump_json()]


async def test_no_index_at_all_is_said(gate: Gate) -> None:
    [verdict] = await gate(()).judge(["honest-package"])
    assert verdict.refusal is not None
    assert verdict.refusal.kind is RefusalKind.INDEX_UNAVAILABLE


async def test_the_first_index_that_has_it_decides(gate: Gate, index: Index) -> None:
    index.packages = {"honest-package": (Upload("1.0"),)}
    elsewhere = index.address.replace("/simple", "/nothing")
    assert refused(await gate((elsewhere, index.address)).judge(["honest-package"])) == [None]


async def test_what_was_asked_is_known_for_a_while(gate: Gate, index: Index) -> None:
    now = [0.0]
    judge = gate(clock=lambda: now[0]).judge
    assert refused(await judge(["honest-package", "honest_package"])) == [RefusalKind.UNKNOWN] * 2
    await judge(["honest-package"])
    assert index.asked == ["honest-package"]
    index.packages = {"honest-package": (Upload("1.0"),)}
    now[0] = 601
    assert refused(await judge(["honest-package"])) == [None]


async def test_what_is_imported_is_a_well_known_package_or_not_certain(gate: Gate) -> None:
    packages, unknown = gate().packages_of_imports(["yaml", "requests", "PIL", "reqeusts", "my_own"])
    assert packages == ("pillow", "requests", "pyyaml")
    assert unknown == ("my_own", "reqeusts")


async def test_a_popular_name_that_many_use_for_their_own_or_share_is_not_certain(gate: Gate) -> None:
    names = ["azure", "config", "dotenv", "google", "path", "progress", "tools"]
    assert gate().packages_of_imports(names) == (("python-dotenv",), tuple(name for name in names if name != "dotenv"))
    assert gate().packages_of_imports(["Crypto", "crypto", "tree"]) == (("pycryptodome",), ("crypto", "tree"))
    assert gate().packages_of_imports(["CRYPTO", "Config", "Path", "Tree"]) == ((), ("CRYPTO", "Config", "Path", "Tree"))
