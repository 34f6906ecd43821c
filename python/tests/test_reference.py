"""The API reference lists every public name."""

import importlib.util
from pathlib import Path

import paceline

ROOT = Path(__file__).parents[2]


def tool():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "python/tools/reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_described():
    reference = tool()
    listed = {name for _, _, names in reference.SECTIONS for name in names}
    assert set(paceline.__all__) - listed == {"__version__"}
    for _, file, names in reference.SECTIONS:
        defined = reference.definitions(reference.PACKAGE / file)
        assert all(reference.prose(defined[name]) for name in names), file
    page = reference.page()
    assert all(f"### `{name}`" in page for name in listed)
