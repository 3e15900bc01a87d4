"""What a Dockerfile may ask of the engine."""

import pytest

from engine.runtimes.docker.dockerfiles import Dockerfile, DockerfileRefused, check_triggers

FETCHING = [
    "ADD http://127.0.0.1:7233/ /x",
    "add HTTPS://example.com/x /x",
    "ADD --chown=1:1 http://example.com/x /x",
    'ADD ["http://example.com/x", "/x"]',
    "ADD ht\\\ntp://example.com/x /x",
    "ADD $WHERE /x",
    'ADD "ht"tp://example.com /x',
    "ADD git@example.com:a/b.git /x",
    "ONBUILD ADD http://example.com/x /x",
    "RUN true\n  # a comment\n\tADD\thttp://example.com/x /x",
]


@pytest.mark.parametrize("line", FETCHING)
def test_what_the_engine_itself_would_fetch_is_refused(line: str) -> None:
    with pytest.raises(DockerfileRefused):
        Dockerfile.read(f"FROM scratch\nARG WHERE=http://example.com\n{line}\n")


def test_with_another_escape_character_too() -> None:
    with pytest.raises(DockerfileRefused):
        Dockerfile.read("# escape=`\nFROM scratch\nADD ht`\ntp://example.com/x /x\n")


@pytest.mark.parametrize("line", ["ADD app.tar.gz /app", "ADD . /app", "ADD --chown=1:1 a b/ /x/", 'ADD ["a", "/x"]', "COPY http: /x"])
def test_files_of_the_folder_may_be_added(line: str) -> None:
    assert line.split()[0] in Dockerfile.read(f"FROM scratch\n{line}\n").labelled({})


@pytest.mark.parametrize("line", ["FROM tool-agent/tool/other:1", "FROM scratch\nCOPY --from=tool-agent/tool/other:1 /secret /x"])
def test_images_of_other_tools_are_refused(line: str) -> None:
    with pytest.raises(DockerfileRefused):
        Dockerfile.read(line)


def test_what_other_images_do_on_being_used_is_judged_too() -> None:
    assert check_triggers("base", ["COPY . /app", "RUN make"])
    assert not check_triggers("base", ["COPY . /app"])
    with pytest.raises(DockerfileRefused):
        check_triggers("base", ["ADD http://example.com /x"])


def test_images_are_written_out_and_every_stage_is_labelled() -> None:
    text = (
        'ARG TAG="3.12"\nFROM python:${TAG} AS made\nRUN a \\\n  # why\n  && b\n'
        "FROM --platform=linux/amd64 other\nCOPY --from=made /x /x\nFROM made\n"
    )
    read = Dockerfile.read(text)
    assert (read.bases, read.runs) == (("python:3.12", "other"), True)
    assert read.labelled({"a": "b"}).splitlines() == [
        "# escape=\\",
        'ARG TAG="3.12"',
        "FROM python:3.12 AS made",
        "LABEL a=b",
        "RUN a   && b",
        "FROM --platform=linux/amd64 other",
        "LABEL a=b",
        "COPY --from=made /x /x",
        "FROM made",
        "LABEL a=b",
    ]


def test_an_image_that_is_left_open_is_refused() -> None:
    with pytest.raises(DockerfileRefused):
        Dockerfile.read("ARG IMAGE\nFROM $IMAGE\n")


def test_every_stage_is_told_the_arguments_of_the_build() -> None:
    text = Dockerfile.read("FROM a AS made\nRUN x\nFROM made\n").labelled({"a": "b"}, ["PIP_INDEX_URL", "UV_INDEX"])
    stage = ["LABEL a=b", "ARG PIP_INDEX_URL", "ARG UV_INDEX"]
    assert text.splitlines()[1:] == ["FROM a AS made", *stage, "RUN x", "FROM made", *stage]


def test_a_hundred_thousand_continued_lines_take_no_more_time_than_others() -> None:
    # Looked through from the beginning for each line, this takes half a minute for ten thousand.
    Dockerfile.read("FROM agent-sandbox:latest\n" + "RUN a \\\n" * 400_000 + "b\n")
