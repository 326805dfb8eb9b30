"""JWTs verified by a library of another language."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

NODE = Path(__file__).parents[2] / "node"


def node_verifies(*asks: dict[str, Any]) -> list[dict[str, Any]]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["node", "verify.mjs"],
        input=json.dumps(asks),
        capture_output=True,
        text=True,
        cwd=NODE,
        check=True,
        env=os.environ | {"PATH": path},
        timeout=60,
    )
    return list(json.loads(done.stdout))
