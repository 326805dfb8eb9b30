"""Each extra, alone, gives a working command for what it promises; what is missing is named in one sentence (D2).

An empty environment with one extra is imitated: every module of a distribution outside the extra's requirements is
hidden from the command. So the test needs no network and sees exactly what the metadata promise.
"""

import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions

import pytest
from packaging.utils import canonicalize_name

from tests.deploy.extras import required

HIDE = """
import sys
hidden = set({hidden!r})
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
sys.argv = ["frontrow", *{words!r}]
{program}
"""
COMMAND = "from frontrow.cli.main import main\nmain()"
LIMIT = "from frontrow.limits import Limiter\nassert Limiter('5/minute').check('a').remaining == 4"
WORKS = [
    ("", LIMIT, ()),
    ("redis", "from frontrow.limits import Limiter\nLimiter('5/minute', store='redis://127.0.0.1:1/0')", ()),
    ("", "import frontrow.testing.clock, frontrow.testing.limits", ()),
    ("room", "import frontrow.testing.room", ()),
    ("boxoffice", "import frontrow.testing.payments", ()),
    ("client", "import frontrow.client", ()),
    ("cli", COMMAND, ("limits", "try", "5/second")),
    ("room", COMMAND, ("room", "serve", "--help")),
    ("room", "import frontrow.web.server.room_server, frontrow.app.room_wiring", ()),
    ("boxoffice", COMMAND, ("event", "plan", "generate", "--help")),
    ("boxoffice", COMMAND, ("ledger", "migrate", "--ledger", "sqlite:///new.db")),
    ("tickets", COMMAND, ("door", "--help")),
    ("rehearsal", COMMAND, ("rehearse", "--people", "2000", "--seats", "100")),
    ("platform", COMMAND, ("serve", "--help")),
    ("platform", COMMAND, ("keys", "--help")),
    ("platform", COMMAND, ("demo", "--help")),
    ("platform", COMMAND, ("doctor",)),
]
REFUSES = [
    ("", ("limits", "--help"), "frontrow[cli]"),
    ("cli", ("room", "serve"), "frontrow[room]"),
    ("cli", ("ledger", "status"), "frontrow[boxoffice]"),
    ("room", ("serve",), "frontrow[platform]"),
    ("cli", ("rehearse",), "frontrow[rehearsal]"),
]


@cache
def _owners() -> dict[str, list[str]]:
    return dict(packages_distributions())


def run(extra: str, program: str, words: tuple[str, ...], folder: object) -> "subprocess.CompletedProcess[str]":
    brought = required(extra)
    hidden = [top for top, names in _owners().items() if not brought & {canonicalize_name(name) for name in names}]
    text = HIDE.format(hidden=hidden, words=words, program=program)
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, cwd=folder, timeout=120, check=False
    )


@pytest.mark.parametrize(("extra", "program", "words"), WORKS)
def test_d2_an_extra_gives_what_it_promises(tmp_path, extra, program, words):
    done = run(extra, program, words, tmp_path)
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert "not installed" not in done.stderr, done.stderr
    assert done.returncode == 0 or words == ("doctor",), done.stderr[-3000:]  # it may find something to say


@pytest.mark.parametrize(("extra", "words", "advice"), REFUSES)
def test_d2_a_missing_extra_is_named_in_one_sentence(tmp_path, extra, words, advice):
    done = run(extra, COMMAND, words, tmp_path)
    assert done.returncode == 1
    assert advice in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_d2_hiding_hides():
    """The canary: without the extra the library is really not there."""
    done = run("cli", "import msgspec", (), None)
    assert "No module named 'msgspec'" in done.stderr
