"""`python -m bench.limits_rules`: how long a change of the shared rules takes to reach twenty servers.

Twenty followers of one rule book run in four processes beside an operator who puts one version after the other, in
Redis and in PostgreSQL. Prints, per store, the time from the `put` until the last follower has the rules in force: the
median, the fastest and the slowest change. Each follower looks every 0.4 s, so the last of them waits for up to 0.4 s.
What is beyond that is the store and the machine. The target is a second.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.measure import Target, options, report
from frontrow.limits.rules import RequestRule
from frontrow.limits.shared_rules import REFRESH_S, SharedRules
from tests.support.servers import Postgres, Valkey

PROCESSES, FOLLOWERS, CHANGES = 4, 5, 20
WITHIN_S = 1.0
FOLLOW = """
import sys, time
from frontrow.limits.rules import RequestRule
from frontrow.limits.shared_rules import SharedRules

followers = [SharedRules([RequestRule("api", "5/day")], store=sys.argv[1]) for _ in range(int(sys.argv[2]))]
print("ready", flush=True)
for line in sys.stdin:
    version = int(line)
    while any(each.book.version < version for each in followers):
        time.sleep(0.001)
    print(time.monotonic(), flush=True)
"""


@contextmanager
def follow(url: str) -> Iterator[list[Any]]:
    """The processes with followers of the book at `url`."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", FOLLOW, url, str(FOLLOWERS)]
    processes = [subprocess.Popen(command, **pipes) for _ in range(PROCESSES)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield processes
    finally:
        for process in processes:
            process.communicate(timeout=30)


def measure(url: str, changes: int) -> list[float]:
    """Seconds from each `put` until the last follower has it in force."""
    took_s = []
    operator = SharedRules([RequestRule("api", "5/day")], store=url)
    try:
        with follow(url) as processes:
            for number in range(changes):
                began_s = time.monotonic()
                text = f'[[limits.rules]]\nname = "api"\nquota = "{number + 1}/day"\n'
                version = operator.put(text, by="bench", seen=number).version
                for process in processes:
                    process.stdin.write(f"{version}\n")
                    process.stdin.flush()
                took_s.append(max(float(process.stdout.readline()) for process in processes) - began_s)
    finally:
        operator.close()
    return took_s


def main() -> int:
    arguments = options(__doc__)
    arguments.add_argument("--changes", type=int, default=CHANGES, help="versions that are put, one after the other")
    changes = arguments.parse_args().changes
    results: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "refresh_s": REFRESH_S}
    targets = []
    with Valkey() as redis, Postgres() as postgresql:
        for name, url in (("Redis", redis.url), ("PostgreSQL", postgresql.url)):
            took_s = results[name] = measure(url, changes)
            figures = f"median {statistics.median(took_s):.3f} s, {min(took_s):.3f} to {max(took_s):.3f} s"
            print(f"{name}: {changes} changes on {PROCESSES * FOLLOWERS} servers of {PROCESSES} processes: {figures}")
            targets.append(Target(f"{name}: the slowest change on every server, s", max(took_s), WITHIN_S, False))
    return 0 if report("limits_rules", results, targets) else 1


if __name__ == "__main__":
    sys.exit(main())
