"""`python -m …killed_migrations URL`: upgrades a new ledger version by version, and is killed again and again.

Each attempt is a process of its own that ends before its first, fourth, sixteenth … statement, as after SIGKILL.
The next attempt finds what the last one left. Prints how often each version was killed.
"""

import json
import os
import sys
from typing import Any, Final

from sqlalchemy import event
from sqlalchemy.engine import Engine

from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.schema_versions import known_versions, newest_version

KILLED: Final = 137


def versions() -> list[str]:
    """Every version, the oldest first."""
    found, known = [newest_version()], known_versions()
    while before := known[found[-1]]:
        found.append(before)
    return found[::-1]


def is_killed(url: str, version: str, before_statement: int) -> bool:
    """Upgrade in a process that dies before this statement; whether it did."""
    child = os.fork()
    if child == 0:
        _upgrade(url, version, before_statement)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, KILLED):
        raise SystemExit(f"{version} cannot go on after it was killed: {code}")
    return code == KILLED


def _upgrade(url: str, version: str, before_statement: int) -> None:
    seen = 0

    def count(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == before_statement:
            os._exit(KILLED)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        migrate(url, version)
    except BaseException as error:
        sys.stderr.write(f"{version}, statement {before_statement}: {error!r}\n")
        os._exit(1)
    os._exit(0)


def main(url: str) -> dict[str, int]:
    kills = {}
    for version in versions():
        kills[version], statement = 0, 1
        while is_killed(url, version, statement):
            kills[version] += 1
            statement *= 4
    return kills


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])))
