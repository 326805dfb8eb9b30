"""What installing Frontrow needs from a machine."""

import runpy
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import setuptools

ROOT = Path(__file__).parents[1]


def test_the_compiled_kernel_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler the install goes on with the plain store. Cython's `cythonize` returns new extensions and
    drops the flag, which the stand-in does too."""

    def cythonize(modules: list[setuptools.Extension], **options: Any) -> list[setuptools.Extension]:
        return [setuptools.Extension(module.name, module.sources) for module in modules]

    built: dict[str, Any] = {}
    monkeypatch.setitem(sys.modules, "Cython", types.ModuleType("Cython"))
    monkeypatch.setitem(sys.modules, "Cython.Build", types.SimpleNamespace(cythonize=cythonize))
    monkeypatch.setattr(setuptools, "setup", lambda **given: built.update(given))
    runpy.run_path(str(ROOT / "setup.py"))
    assert [module.name for module in built["ext_modules"]] == ["frontrow.limits.stores._kernel"]
    assert all(module.optional for module in built["ext_modules"])
