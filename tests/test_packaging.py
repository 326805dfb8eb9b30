"""What installing Frontrow needs from a machine."""

import runpy
import sys
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


class Extension:
    """Stands in for setuptools' class, which a development environment need not have."""

    def __init__(self, name: str, sources: list[str], **options: Any) -> None:
        self.name, self.sources, self.optional = name, sources, options.get("optional", False)


def cythonize(modules: list[Extension], **options: Any) -> list[Extension]:
    """Returns new extensions and drops the flag, as Cython does."""
    return [Extension(module.name, module.sources) for module in modules]


def test_the_compiled_kernel_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler the install goes on with the plain store."""
    built: dict[str, Any] = {}
    setuptools = types.SimpleNamespace(Extension=Extension, setup=lambda **given: built.update(given))
    monkeypatch.setitem(sys.modules, "setuptools", setuptools)
    monkeypatch.setitem(sys.modules, "Cython", types.ModuleType("Cython"))
    monkeypatch.setitem(sys.modules, "Cython.Build", types.SimpleNamespace(cythonize=cythonize))
    runpy.run_path(str(ROOT / "setup.py"))
    assert [module.name for module in built["ext_modules"]] == ["frontrow.limits.stores._kernel"]
    assert all(module.optional for module in built["ext_modules"])
