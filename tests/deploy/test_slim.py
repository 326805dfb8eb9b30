"""deploy/slim.py: what the image's environment loses is nothing that a server reads."""

import importlib.util
import re
from pathlib import Path

from babel import Locale

from frontrow.web.site.languages import LANGUAGES

specification = importlib.util.spec_from_file_location("slim", "deploy/slim.py")
assert specification is not None
assert specification.loader is not None
slim = importlib.util.module_from_spec(specification)
specification.loader.exec_module(slim)

KEPT = (
    *("babel/locale-data/root.dat", "babel/locale-data/en.dat", "babel/locale-data/en_001.dat", "babel/core.py"),
    *("faker/providers/person/en_US/__init__.py", "faker/providers/person/__init__.py", "sqlalchemy/engine/base.py"),
    *("uvloop/loop.cpython-313.so", "pillow.libs/libjpeg.so", "testing_tools/x.py", "frontrow/web/static/js/seats.js"),
)
DROPPED = (
    *("babel/locale-data/is.dat", "babel/locale-data/zu_ZA.dat", "faker/providers/person/de_DE/__init__.py"),
    *("jsonschema/tests/test_cli.py", "sqlalchemy/testing/suite/a.py", "uvloop/loop.c", "uvloop/loop.pyi", "x/a.pyx"),
)


def test_what_no_server_reads_is_dropped_and_the_rest_is_kept(tmp_path: Path) -> None:
    for name in (*KEPT, *DROPPED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    stripped: list[Path] = []
    slim.slim(tmp_path, LANGUAGES, stripped.append)
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == set(KEPT)
    assert [file.name for file in stripped] == ["loop.cpython-313.so"], "libraries of wheels are left alone"


def test_every_language_of_ours_and_what_it_inherits_from_is_kept() -> None:
    """The real data: each language is read again with only the kept files."""
    import babel

    folder = Path(babel.__file__).parent / "locale-data"
    packages = folder.parents[1]
    gone = {path.stem for path in slim.unused(packages, LANGUAGES) if path.parent == folder}
    assert len(gone) > 500
    for language in LANGUAGES:
        assert language not in gone
        parent = Locale.parse(language)
        assert parent.territories
        assert not {name for name in gone if re.split("_", name)[0] == language}
