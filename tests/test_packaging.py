"""What installing Frontrow needs from a machine: a source distribution and a wheel, with and without a compiler."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UV = [sys.executable, "-m", "uv"]
OTHERS = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
KERNEL = "frontrow/limits/stores/_kernel"
TRY_LIMITER = """
from frontrow.limits import Limiter
limiter = Limiter("2/minute")
assert [limiter.check("fan").allowed for _ in range(3)] == [True, True, False]
print(type(limiter._store).__name__)
"""


def build(source: Path, into: Path, *kinds: str, **environment: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--installer", "uv", *kinds, "--outdir", into, source],
        env=os.environ | environment,
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files that a distribution is made of."""
    copy = tmp_path_factory.mktemp("frontrow")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src", *OTHERS],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.split("\0")[:-1]:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    return copy


def test_a_source_distribution_and_its_wheel_install_without_a_compiler(sources: Path, tmp_path: Path) -> None:
    """The wheel is built from the source distribution, as an installer does that finds no wheel for its machine."""
    build(sources, tmp_path, CC="false")
    [archive], [wheel] = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(archive) as packed:
        shipped = {name.partition("/src/")[2] for name in packed.getnames()}
    assert {f"{KERNEL}.pyx", f"{KERNEL}.pyi"} <= shipped
    assert not any(name.endswith((".c", ".so")) for name in shipped)
    installed = set(zipfile.ZipFile(wheel).namelist())
    assert f"{KERNEL}.pyi" in installed
    assert not any(name.endswith((".c", ".so")) for name in installed)
    data = {name for name in shipped if name.endswith((".py", ".lua", ".sql", ".html", ".js", ".css", ".json", ".po"))}
    assert data - installed == set(), "everything that is needed to run"

    home = tmp_path / "empty"
    subprocess.run([*UV, "venv", "--quiet", "--python", sys.executable, home], check=True)
    subprocess.run([*UV, "pip", "install", "--quiet", "--no-deps", "--python", home, wheel], check=True)
    told = subprocess.run(
        [home / "bin" / "python", "-I", "-c", TRY_LIMITER], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert told.stdout.strip() == "MemoryStore"
