"""One specification, one file of vectors: every connector decides the same (O6)."""

import re
import subprocess
from pathlib import Path

import pytest

from connectors import make_rules_vectors, make_vectors
from tests.shop_connectors.languages import HERE, LANGUAGES, ROOT, RULES_VECTORS, VECTORS, Language


def test_the_checked_in_vectors_are_those_of_the_reference() -> None:
    assert (ROOT / "connectors/vectors.json").read_text() == make_vectors.text(), "python -m connectors.make_vectors"
    rules = (ROOT / "connectors/rules_vectors.json").read_text()
    assert rules == make_rules_vectors.text(), "python -m connectors.make_rules_vectors"


def test_there_are_vectors_of_every_kind() -> None:
    names = [vector["name"] for vector in VECTORS]
    assert len(names) >= 300
    for kind in (
        "forged",
        "expired",
        "ended",
        "another event",
        "another shop",
        "rotation",
        "clock skew",
        "not open",
        "copied",
    ):
        assert sum(kind in name for name in names) >= 1, kind
    assert len(RULES_VECTORS) >= 100
    actions = {vector["expect"]["action"] for vector in VECTORS}
    assert actions == {"pass", "open", "strip", "exchange", "end", "room", "refuse"}


@pytest.mark.parametrize("language", [one for one in HERE if one.vectors], ids=lambda one: one.name)
def test_a_connector_passes_every_vector_in_its_own_runtime(language: Language) -> None:
    done = subprocess.run(language.vectors, cwd=ROOT / language.folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    count = len(VECTORS) + (len(RULES_VECTORS) if language.reads_rules else 0)
    assert f"{count} of {count} vectors" in done.stdout


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.name)
def test_a_connector_is_small_and_needs_nothing(language: Language) -> None:
    for name in language.files:
        text = (ROOT / name).read_text()
        assert len(text.splitlines()) <= 300, name
        assert not re.search(r"^(import|from) (?!frontrow|django)(jwt|cryptography|requests|httpx)", text, re.MULTILINE)


def test_the_reference_can_be_copied_alone(tmp_path: Path) -> None:
    """Three files of the standard library: a shop needs no Frontrow."""
    for name in ("connector", "connector_rules", "connector_client"):
        text = (ROOT / f"src/frontrow/waitingroom/protect/{name}.py").read_text()
        (tmp_path / f"{name}.py").write_text(text.replace("frontrow.waitingroom.protect.connector", "connector"))
    code = "import sys; import connector_client; sys.exit('frontrow' in sys.modules or 'jwt' in sys.modules)"
    done = subprocess.run(["python3", "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"])
    assert done.returncode == 0
