"""Where the recordings are, and copies of them under other names."""

import pathlib

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
RECORDINGS = REPOSITORY / "recordings"
ISOLATION = ["g61-c16-iso", "g612-c16-iso", "g612-c16-iso-tm0", "g619-c16-iso"]


@pytest.fixture
def copies(tmp_path):
    """Makes a folder with so many recordings: the bundled ones under other names."""

    def make(count):
        folder = tmp_path / "recordings"
        folder.mkdir()
        for number in range(count):
            name = ISOLATION[number % len(ISOLATION)]
            (folder / f"{number:04d}-{name}.txt.zst").symlink_to(RECORDINGS / f"{name}.txt.zst")
        return folder

    return make
