"""Names that resemble popular ones, and names that do not."""

import time

import pytest

from engine.making.dependencies.near_misses import NearMisses
from engine.making.dependencies.popular import PopularPackages


@pytest.fixture(scope="module")
def names(popular: PopularPackages) -> NearMisses:
    return NearMisses(popular)


@pytest.mark.parametrize(
    ("name", "popular_name"),
    [
        ("requets", "requests"),
        ("reqeusts", "requests"),
        ("requestes", "requests"),
        ("requessts", "requests"),
        ("requests2", "requests"),
        ("pyrequests", "requests"),
        ("requests-lib", "requests"),
        ("python3-requests", "requests"),
        ("official-requests", "requests"),
        ("num-py", "numpy"),
        ("d-jango", "django"),
        ("dj4ngo", "django"),
        ("f1ask", "flask"),
        ("pydatnic", "pydantic"),
        ("bs-4", "bs4"),
        ("s1x", "six"),
        ("yaml-py", "pyyaml"),
        ("c1ick", "click"),
        ("rnatplotlib", "matplotlib"),
        ("learn-scikit", "scikit-learn"),
        ("google-cloud-storrage", "google-cloud-storage"),
        ("transfomers", "transformers"),
    ],
)
def test_a_near_miss_is_found(names: NearMisses, name: str, popular_name: str) -> None:
    assert names.find(name) == popular_name


@pytest.mark.parametrize(
    "name",
    [
        *("requests", "numpy", "boto", "boto3", "psycopg", "psycopg2", "types-requests", "pytest-cov", "pytest-cpp", "django-filter"),
        *("requests-oauthlib", "flask-login", "fastapi-users", "types-redis", "sax", "flax", "numba", "httpx-sse", "async-lru", "pyarrow"),
        *("weatherstation-reader", "acme", "my-tool", "openai-agents", "django-money", "google-cloud-kms"),
    ],
)
def test_honest_names_are_left_alone(names: NearMisses, name: str) -> None:
    assert names.find(name) is None


def test_a_very_long_name_is_like_none_at_once(names: NearMisses) -> None:
    begun = time.process_time()
    assert names.find("1" * 200_000 + "a") is None
    assert time.process_time() - begun < 1


def test_comments_and_import_names_are_read() -> None:
    popular = PopularPackages.of(["# well known", "PyYAML yaml  # a comment", "", "sklearn", "scikit_learn sklearn"])
    assert popular == PopularPackages(("pyyaml", "scikit-learn"), {"yaml": "pyyaml", "sklearn": "scikit-learn"})
