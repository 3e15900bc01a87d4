"""`make demo`: from nothing to a stitched picture, and nothing left running."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.system.leftovers import processes_of
from tests.system.service_process import ROOT, child_environment

pytestmark = pytest.mark.timeout(480)


def test_the_demo_leaves_a_stitched_picture_and_shows_tools_that_it_made(tmp_path: Path) -> None:
    state = tmp_path / ".demo"
    done = subprocess.run(
        [sys.executable, "-m", "workers", "demo"],
        cwd=tmp_path,
        env=child_environment(state, ROOT / "data", {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=420,
    )
    assert done.returncode == 0, done.stderr
    picture = tmp_path / "demo-output" / "stitched.png"
    assert str(picture) in done.stderr
    # A model's turns come from a file, which is said; tools of both kinds are made, called, and answer.
    assert "replayed" in done.stderr
    assert 'word_counter({"text": "the cat and the hat"}) = {"words": 5, "most_common": "the"}' in done.stderr
    assert 'units_fahrenheit({"celsius": 21.5}) = {"degrees": 70.7}' in done.stderr
    with Image.open(picture) as stitched:
        assert stitched.size == (3 * 160 + 2 * 12, 160)
        assert stitched.getpixel((160 + 6, 80)) == (255, 255, 255)
        assert stitched.getpixel((159, 159)) != (255, 255, 255)
    assert processes_of(state) == {}
    assert processes_of(tmp_path) == {}
