"""Server processes for bench/seats.py (bench/seats_worker.py each): started, ordered about together, added up."""

import json
import subprocess
import sys
from typing import Any

import psycopg

from bench.seats_load import Meter
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from tests.support.servers import Postgres, Valkey


class Workers:
    """Server processes of one event in a fresh database, ordered about together."""

    def __init__(self, size: int, valkeys: list[Valkey], postgres: Postgres, name: str, count: int) -> None:
        self.servers = {"redis": [valkey.pid for valkey in valkeys], "postgres": [postgres.pid]}
        url, event_id = fresh_database(postgres, name), f"evt_{name}"
        urls = [valkey.unix_url for valkey in valkeys]
        self._children = []
        for number in range(count):  # one after the other: the first fills the claim store
            command = [sys.executable, "-m", "bench.seats_worker", url, event_id, str(size), str(number), *urls]
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._children.append(child)
            self._hear(child, "open")

    def _hear(self, child: "subprocess.Popen[str]", word: str = "") -> str:
        line = (child.stdout.readline() if child.stdout else "").strip()
        if not line or (word and line != word):
            raise RuntimeError(f"a server process said {line!r}")
        return line

    def _say(self, line: str) -> None:
        for child in self._children:
            assert child.stdin is not None
            child.stdin.write(line + "\n")
            child.stdin.flush()

    def run(self, attempts: int, rate: float = 0.0, seconds: float = 3600.0, times: int = 1) -> dict[str, Any]:
        """A crowd of so many attempts, spread over the processes; as fast as they go or at a rate."""
        each = len(self._children)
        self._say(json.dumps({"count": attempts // each, "rate": rate / each, "seconds": seconds, "times": times}))
        for child in self._children:
            self._hear(child, "ready")
        with Meter(self.servers) as meter:
            self._say("go")
            told = [json.loads(self._hear(child)) for child in self._children]
        ended = {
            name: sum(one[name] for one in told) for name in ("won", "refused_locally", "refused_by_claims", "failed")
        }
        made = sum(ended.values())
        overhead_us = sum(one["overhead_us"] for one in told) / each
        wall_s = max(one["wall_s"] for one in told)
        service_us = sum(one["cpu_s"] for one in told) / made * 1e6 - overhead_us
        return ended | {
            "attempts_per_s": round(made / wall_s),
            "durable_holds_per_s": round(ended["won"] / wall_s),
            "rate_per_s": round(rate),
            "cpu_us": {"service": round(service_us, 2)}
            | {who: us for who, us in meter.per_us(made).items() if who != "service"},
            "load_generator_us": round(overhead_us, 2),
            "all_ms": _worst(told, "all_ms"),
            "won_ms": _worst(told, "won_ms"),
            "wrong_refusals": sum(one["audited_free"] for one in told) / max(1, sum(one["audited"] for one in told)),
        }

    def close(self) -> None:
        for child in self._children:
            try:
                child.communicate(timeout=30)
            finally:
                child.kill()


def _worst(told: list[dict[str, Any]], name: str) -> dict[str, float]:
    """Each percentile of the slower process."""
    return {share: max(one[name][share] for one in told) for share in ("p50", "p99", "p99.9")}


WAL_FILES = 24  # of 16 MB: more than a sale of 50,000 seats fills
POSTGRES = ("-c", "shared_buffers=256MB", "-c", "min_wal_size=1GB")


def wal_ready(postgres: Postgres, files: int = 0) -> None:
    """As a server that has run for a while: write-ahead files are used again, not made anew inside a commit.

    `files`: so many are made first. A checkpoint renames those that were used to be used next.
    """
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        for _ in range(files):
            admin.execute("SELECT pg_logical_emit_message(false, 'bench', 'a file has something in it')")
            admin.execute("SELECT pg_switch_wal()")
        admin.execute("CHECKPOINT")


def fresh_database(postgres: Postgres, name: str) -> str:
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
    url = postgres.url.rpartition("/")[0] + f"/{name}"
    migrate(url)
    return url
