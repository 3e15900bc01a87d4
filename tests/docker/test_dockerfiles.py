"""The checks of Dockerfiles."""

import pytest

from engine.runtimes.docker.building.dockerfiles import Dockerfile, DockerfileRefused, check_triggers

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
    # What looks like a space to one reader is none to another, and ends, joins or splits a line for one of them only.
    *(f"ADD a \\{space}\nENV http://example.com/x /x" for space in "\v\f\r\x1c\x85\xa0\u2003\u2028"),
    *(f"ADD a{space}http://example.com/x /x" for space in "\v\f\x1d\x85\xa0\u3000"),
    *(f"ENV a b{space}" for space in "\v\xa0"),
    "ADD a\xa0http://example.com/x /x",
    "ADD --checksum=sha256:0 http://example.com/x /x",
    "ADD git@example.com/x /x",
    'ADD --ch"own"=1:1 a /x',
    "RUN cat <<'1'\nADD http://example.com/x /x\n1",
    "COPY <<$X /x",
    "RUN ${x:-<<EOF}",
    "RUN --mount=type=bind,from=tool-agent/tool/other:1 true",
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


OTHERS = [
    "FROM tool-agent/tool/other:1",
    "# escape=`\nFROM tool`-agent/tool/other:1",
    'ARG X="tool-agent"\nFROM $X/tool/other:1',
    *(
        f"FROM scratch\n{line} /secret /x"
        for line in (
            "COPY --from=tool-agent/tool/other:1",
            'COPY --from=tool"-"agent/tool/other:1',
            "COPY --from=tool\\-agent/tool/other:1",
            'COPY --fr"o"m=tool-agent/tool/other:1',
            "COPY --chown=1:1 --from=$X",
            "COPY --from=",
            "ONBUILD COPY --from=tool-agent/tool/other:1",
        )
    ),
]


@pytest.mark.parametrize("text", OTHERS)
def test_images_of_other_tools_are_refused(text: str) -> None:
    with pytest.raises(DockerfileRefused):
        Dockerfile.read(text)


def test_an_image_that_is_copied_from_is_judged_as_one_that_is_begun_with() -> None:
    identity = "0123456789abcdef" * 4
    read = Dockerfile.read(
        f"FROM a AS made\nCOPY --from={identity} /x /x\nCOPY --from=5 /x /x\nFROM b\nCOPY --from=MADE /x /x\nCOPY --from=0 /x /x\n"
    )
    assert read.bases == ("a", identity, "5", "b")


LABELS = [
    "{}=x",
    "a=b {}=x",
    '"{}"=x',
    "'{}'=x",
    "{} x",
    'a="b" {}="x"',
    '"or"g.{}=x',
    "org.tool-agent.$X=x",
    "$X=x",
    "a=b $X=x",
    "{}\\=x",
    'a="\\" {}=x',
]


@pytest.mark.parametrize("start", ["LABEL", "ONBUILD LABEL"])
@pytest.mark.parametrize("label", LABELS)
def test_no_image_says_by_our_labels_whose_it_is(label: str, start: str) -> None:
    with pytest.raises(DockerfileRefused):
        Dockerfile.read(f"FROM scratch\nENV X=org.tool-agent.name\n{start} {label.format('org.tool-agent.name')}\n")
    if start == "LABEL":
        with pytest.raises(DockerfileRefused):
            check_triggers("base", [f"LABEL {label.format('org.tool-agent.name')}"])


def test_other_labels_may_be_given() -> None:
    Dockerfile.read(
        'FROM scratch\nLABEL org.opencontainers.image.title="A $TOOL, what else" "vendor"=\'me\' v=1\nLABEL maintainer me and you\n'
    )


def test_what_is_sent_is_read_as_what_was_judged() -> None:
    read = Dockerfile.read("FROM scratch\nENV A=1\n")
    with pytest.raises(DockerfileRefused):
        read.labelled({"a": "b \\"})
    with pytest.raises(DockerfileRefused):
        read.labelled({"a": "b"}, ["X\nADD http://example.com /x"])


def test_what_other_images_do_on_being_used_is_judged_too() -> None:
    assert check_triggers("base", ["COPY . /app", "RUN make"])
    assert not check_triggers("base", ["COPY . /app"])
    with pytest.raises(DockerfileRefused):
        check_triggers("base", ["ADD http://example.com /x"])
    for trigger in ("COPY --from=other /x /x", "RUN true\nADD http://example.com /x", "ADD\vhttp://example.com /x"):
        with pytest.raises(DockerfileRefused):
            check_triggers("base", [trigger])


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
