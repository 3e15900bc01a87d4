"""`make demo` stitches a picture from nothing, and leaves no process running."""

from pathlib import Path

import pytest
from PIL import Image

from tests.system.leftovers import processes_of
from tests.system.loaded import start_workers
from tests.system.service_process import ROOT, child_environment, settings_beside

pytestmark = pytest.mark.timeout(480)


def test_the_demo_leaves_a_stitched_picture_and_shows_tools_that_it_made(tmp_path: Path, catalog: Path) -> None:
    state, log = tmp_path / ".demo", tmp_path / "demo.log"
    with log.open("wb") as output:
        environment = child_environment(state, ROOT / "data", settings_beside(catalog))
        code = start_workers(["demo"], tmp_path, environment, output, output).wait(420)
    said = log.read_text("utf-8")
    assert code == 0, said
    picture = tmp_path / "demo-output" / "stitched.png"
    assert str(picture) in said
    # A model's turns come from a file, which is said; tools of both kinds are made, called, and answer.
    assert "replayed" in said
    assert 'word_counter({"text": "the cat and the hat"}) = {"words": 5, "most_common": "the"}' in said
    assert 'units_fahrenheit({"celsius": 21.5}) = {"degrees": 70.7}' in said
    with Image.open(picture) as stitched:
        assert stitched.size == (3 * 160 + 2 * 12, 160)
        assert stitched.getpixel((160 + 6, 80)) == (255, 255, 255)
        assert stitched.getpixel((159, 159)) != (255, 255, 255)
    assert processes_of(state) == {}
    assert processes_of(tmp_path) == {}
