"""pretix' hold path beside ours: `python -m bench.seats --pretix`, or alone as `python -m bench.pretix_peer`.

pretix is installed from PyPI into a throw-away environment (a few minutes the first time), which is kept in bench/out
for the next run. FRONTROW_PRETIX_PYTHON names a Python that has it already.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.measure import options
from tests.support.servers import Postgres

HOME = Path(__file__).parent / "out" / "pretix"
VERSION = "2026.8.0"
LONGEST_S = 900


def python_with_pretix() -> str:
    """A Python that can import pretix, installed now if there is none yet."""
    given = os.environ.get("FRONTROW_PRETIX_PYTHON")
    if given:
        return given
    python = HOME / "bin" / "python"
    if not (HOME / "ready").exists():
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(HOME)], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", str(python), f"pretix=={VERSION}"]
        subprocess.run(install, check=True, timeout=LONGEST_S)
        (HOME / "ready").touch()
    return str(python)


def holds(seconds: float = 5.0) -> dict[str, Any]:
    """Holds a second and CPU of pretix' CartManager on a fresh PostgreSQL, one after the other in one process."""
    python = python_with_pretix()
    script = str(Path(__file__).with_name("pretix_holds.py"))
    with Postgres() as server:
        done = subprocess.run(  # what it says on the way goes to our error output
            [python, "-P", script, server.url, str(seconds)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=LONGEST_S,
        )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    options(__doc__).parse_args()
    print(holds())
