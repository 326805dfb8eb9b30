"""The pages' scripts and styles as a wheel has them: minified by setup.py."""

import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from frontrow.web.endpoints.room import page
from frontrow.web.http import overflow_page
from frontrow.web.site import assets
from frontrow.web.site.fans import waiting_room

ROOT = Path(__file__).parents[2]
WEB = ROOT / "src" / "frontrow" / "web"


def build_script() -> ModuleType:
    """The functions of setup.py, without setuptools, which would put packages of its own on the path."""
    spec = importlib.util.spec_from_file_location("frontrow_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built_web(folder: Path) -> Path:
    """A copy of the files of `frontrow/web` that pages are made of, as the build leaves them."""
    for name in ("static", "templates"):
        shutil.copytree(WEB / name, folder / name)
    build_script().minify_files(folder)
    return folder


@contextlib.contextmanager
def serving_built(folder: Path) -> Iterator[None]:
    """Pages that are rendered meanwhile have the minified files; `folder` is for the copies."""
    web = built_web(folder)
    with pytest.MonkeyPatch.context() as patch:
        for module in (assets, overflow_page, page, waiting_room):
            patch.setattr(module, "files", lambda package: web)
        _forget()
        yield
    _forget()


def _forget() -> None:
    for cached in (assets.site_assets, page._page_files, waiting_room.script_words):
        cached.cache_clear()
