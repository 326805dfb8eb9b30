"""The languages that connectors exist for: what each needs, how its vectors run, and how its example shop starts.

A machine without a language does not run its tests. `python -m tests.shop_connectors` installs what is missing where it
can, and says what was not checked.
"""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NODE = ROOT / ".venv/bin/node"
VECTORS: list[dict[str, Any]] = json.loads((ROOT / "connectors/vectors.json").read_text())["vectors"]
RULES_VECTORS: list[dict[str, Any]] = json.loads((ROOT / "connectors/rules_vectors.json").read_text())["vectors"]


@dataclass(frozen=True, slots=True)
class Language:
    """`files` are the connector's own: each has at most 300 lines. `needs` are programs, or files by whole path."""

    name: str
    files: tuple[str, ...]
    shop: tuple[str, ...]  # the command of its example; PORT is replaced
    vectors: tuple[str, ...] = ()  # the command that runs the vectors; nothing: the Python tests do
    needs: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()
    folder: str = "."  # where `vectors` runs
    reads_rules: bool = False  # those of the room's console

    @property
    def missing(self) -> list[str]:
        """The programs and files that are not there."""
        return [one for one in self.needs if not (Path(one).exists() if "/" in one else shutil.which(one))]

    def shop_command(self, port: int) -> list[str]:
        return [word.replace("PORT", str(port)) for word in self.shop]

    def environment(self, port: int, room: str, shop: str) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
        workers = {"PHP_CLI_SERVER_WORKERS": "4"} if self.name == "php" else {}
        return plain | workers | {"PORT": str(port), "ROOM_URL": room, "SHOP_URL": shop, "PYTHONPATH": str(ROOT)}


PROTECT = "src/frontrow/waitingroom/protect"
LANGUAGES: Sequence[Language] = (
    Language(
        "asgi",
        tuple(
            f"{PROTECT}/{name}.py" for name in ("connector", "connector_rules", "connector_client", "connector_asgi")
        ),
        (sys.executable, "-m", "uvicorn", "examples.shops.asgi_shop:app", "--port", "PORT"),
        reads_rules=True,
    ),
    Language(
        "wsgi",
        (f"{PROTECT}/connector_wsgi.py",),
        (sys.executable, "examples/shops/wsgi_shop.py", "PORT"),
        reads_rules=True,
    ),
    Language(
        "django",
        (f"{PROTECT}/connector_django.py",),
        (sys.executable, "examples/shops/django_shop.py", "runserver", "PORT", "--noreload"),
        reads_rules=True,
    ),
    Language(
        "node",
        tuple(f"connectors/javascript/{name}.mjs" for name in ("frontrow", "rules", "express")),
        (str(NODE), "examples/shops/node_shop.mjs"),
        (str(NODE), "connectors/javascript/vectors.mjs"),
        (str(NODE),),
        reads_rules=True,
    ),
    Language(
        "edge",
        ("connectors/javascript/worker.mjs", "connectors/javascript/snippet.mjs"),
        (str(NODE), "examples/shops/edge_shop.mjs"),
        needs=(str(NODE),),
        reads_rules=True,
    ),
    Language(
        "php",
        ("connectors/php/frontrow.php",),
        ("php", "-S", "127.0.0.1:PORT", "examples/shops/php_shop.php"),
        ("php", "connectors/php/vectors.php"),
        ("php",),
        ("php-cli",),
    ),
    Language(
        "go",
        ("connectors/go/frontrow.go", "connectors/go/protect.go"),
        ("sh", "-c", "cd examples/shops/go && out=$(mktemp -d)/shop && go build -o $out . && exec $out"),
        ("go", "test", "-v", "-count=1", "./..."),
        ("go",),
        ("golang-go",),
        folder="connectors/go",
    ),
    Language(
        "java",
        tuple(f"connectors/java/frontrow/{name}.java" for name in ("Connector", "Json", "Room", "FrontrowFilter")),
        ("sh", "examples/shops/java/run.sh"),
        ("sh", "connectors/java/vectors.sh"),
        ("javac", "/usr/share/java/tomcat10-embed-core.jar", "/usr/share/java/jakarta-annotation-api.jar"),
        ("default-jdk-headless", "libtomcat10-embed-java", "libjakarta-annotation-api-java"),
    ),
)
HERE = [language for language in LANGUAGES if not language.missing]
