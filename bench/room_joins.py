"""Real joins through real sockets, as many as wanted: what each costs, and that each position was given once."""

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import redis

from bench.http_load import cpu_s
from bench.room_crowd import HEAD, Crowd
from bench.room_processes import EVENT, ServedRoom, served_room
from frontrow.waitingroom.stores.redis import room_key
from tests.support.servers import Valkey

CONNECTIONS = 1_024
TELL_EVERY = 5_000
SAMPLES = 100
REGISTER, SUMS = "register", "sums.json"  # of a crowd of which not all have joined yet
MOST = 2**24  # addresses of 10.0.0.0/8, one each
Tell = Callable[[int], None]
_position = re.compile(rb'"position":(\d+),').search


class Register:
    """One byte for each position: which were given, and whether any was given twice."""

    def __init__(
        self,
        wanted: int,
        seen: bytearray | None = None,
        *,
        people: int = 0,
        answers: int = 0,
        doubles: int = 0,
        beyond: int = 0,
        refused: int = 0,
    ) -> None:
        self.seen = bytearray(wanted + 1) if seen is None else seen
        self.people = people  # who have asked
        self.answers, self.doubles, self.beyond, self.refused = answers, doubles, beyond, refused
        self.odd = b""  # the first answer that was no place

    def hear(self, answer: bytes) -> None:
        """Note the position in an answer to a join."""
        self.answers += 1
        found = _position(answer) if answer.startswith(b"201", 9) else None
        if found is None:
            self.refused += 1
            self.odd = self.odd or answer
            return
        position = int(found[1])
        if not 0 < position < len(self.seen):
            self.beyond += 1
        elif self.seen[position]:
            self.doubles += 1
        else:
            self.seen[position] = 1

    @property
    def gaps(self) -> int:
        """Positions up to the number of people who asked that nobody was told."""
        return self.people - sum(self.seen[: self.people + 1])

    @property
    def is_exact(self) -> bool:
        """Whether everybody who asked was told one of the positions from 1, and no two the same."""
        return self.answers == self.people and not (self.gaps or self.doubles or self.beyond or self.refused)


def asks(people: int, first: int = 0) -> Iterator[bytes]:
    """A join of each person, from an address of their own (there are so many in 10.0.0.0/8)."""
    start = b"POST /join HTTP/1.1\r\n" + HEAD + b"X-Forwarded-For: 10."
    for number in range(first, people):
        yield b"%b%d.%d.%d\r\nContent-Length: 0\r\n\r\n" % (start, number >> 16, number >> 8 & 255, number & 255)


def measure_joins(
    people: int, tell: Tell, stop: Callable[[], bool], *, kept: Path, connections: int = CONNECTIONS
) -> dict[str, Any]:
    """So many joins at a room in memory.

    When `stop` says so, nobody else joins, and the figures are those of who did. The room is then left in `kept` with
    the register, and the next call goes on from there; when all have joined it is deleted.
    """
    sitting = _Sitting.resume(kept, people)
    with served_room(kept / "room") as room:
        _join(room, sitting, people, tell, stop, connections)
        sitting.audit_bytes = sum(path.stat().st_size for path in room.folder.glob("audit.sqlite*"))
        whole = sitting.people == people
        told = sitting.told(people, connections) | (_restart(room, people) if whole else {})
    if whole:
        shutil.rmtree(kept)
    else:
        sitting.keep(kept)
    return told


def measure_redis_joins(
    people: int, tell: Tell, stop: Callable[[], bool], *, workers: int, connections: int = CONNECTIONS
) -> dict[str, Any]:
    """So many joins at a room whose servers share a Redis."""
    with (
        tempfile.TemporaryDirectory() as name,
        Valkey() as valkey,
        redis.Redis.from_url(valkey.url) as client,
        served_room(Path(name) / "room", valkey.url, workers) as room,
    ):
        sitting, before, redis_s = _Sitting(Register(people)), _redis_bytes(client), cpu_s(valkey.pid)
        _join(room, sitting, people, tell, stop, connections)
        redis_s, more = cpu_s(valkey.pid) - redis_s, _redis_bytes(client) - before
        sitting.audit_bytes = sum(path.stat().st_size for path in room.folder.glob("audit.sqlite*"))
        found: Any = [client.memory_usage(key, samples=0) for key in client.scan_iter(f"{room_key(EVENT)}*")]
        told = sitting.told(people, connections) | {"processes": workers}
        told |= {"redis_us": redis_s / max(1, sitting.people) * 1e6, "redis_bytes": more}
        return told | {"redis_room_bytes": sum(filter(None, found))} | _restart(room, sitting.people)


@dataclass
class _Sitting:
    """What has been measured of one crowd so far, perhaps in several sittings."""

    register: Register
    took_s: float = 0.0
    server_s: float = 0.0
    client_s: float = 0.0
    sittings: int = 0
    memory_before_bytes: int = 0
    memory_after_bytes: int = 0
    audit_bytes: int = 0
    samples: list[list[float]] = field(default_factory=list)  # people, s, server CPU in s, memory in bytes

    @property
    def people(self) -> int:
        return self.register.people

    @classmethod
    def resume(cls, kept: Path, wanted: int) -> "_Sitting":
        """What was kept of a crowd of this size, or a fresh start. Taken away: a sitting that is killed is lost."""
        file = kept / SUMS
        sums = json.loads(file.read_text()) if file.exists() else {}
        if sums.pop("wanted", 0) != wanted:
            shutil.rmtree(kept, ignore_errors=True)
            return cls(Register(wanted))
        counts = sums.pop("counts")
        register = Register(wanted, bytearray((kept / REGISTER).read_bytes()), **counts)
        file.unlink()
        return cls(register, **sums)

    def keep(self, kept: Path) -> None:
        """Leave everything for `resume`."""
        register = self.register
        (kept / REGISTER).write_bytes(register.seen)
        sums = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "register"}
        counts = {name: getattr(register, name) for name in ("people", "answers", "doubles", "beyond", "refused")}
        (kept / SUMS).write_text(json.dumps(sums | {"counts": counts, "wanted": len(register.seen) - 1}))

    def told(self, wanted: int, connections: int) -> dict[str, Any]:
        register, people = self.register, max(1, self.people)
        return {
            "wanted": wanted,
            "people": self.people,
            "sittings": self.sittings,
            "processes": 1,
            "connections": min(connections, wanted),
            "took_s": self.took_s,
            "per_s": people / self.took_s,
            "server_us": self.server_s / people * 1e6,
            "per_s_per_core": people / self.server_s,
            "cores_used": self.server_s / self.took_s,
            "client_us": self.client_s / people * 1e6,
            "memory_before_bytes": self.memory_before_bytes,
            "memory_after_bytes": self.memory_after_bytes,
            "audit_bytes": self.audit_bytes,
            "exact": register.is_exact,
            "answers": register.answers,
            "gaps": register.gaps,
            "doubles": register.doubles,
            "beyond": register.beyond,
            "refused": register.refused,
            "odd": register.odd[:400].decode("latin-1"),
            "samples": self.samples,
        }


def _join(
    room: ServedRoom, sitting: _Sitting, wanted: int, tell: Tell, stop: Callable[[], bool], connections: int
) -> None:
    """Let people join until all have, or `stop` says so, and add what that took."""
    register, first = sitting.register, sitting.people
    with Crowd(room.port, min(connections, wanted)) as crowd:
        before, client_s, began_s = room.used(), time.process_time(), time.perf_counter()
        base = (sitting.took_s, sitting.server_s)

        def watched() -> Iterator[bytes]:
            for number, request in enumerate(asks(wanted, first), start=first):
                if number % TELL_EVERY == 0:
                    tell(number)
                    if stop():
                        break
                if number % max(1, wanted // SAMPLES) == 0:
                    now, at_s = room.used(), time.perf_counter() - began_s
                    used_s = base[1] + now.cpu_s - before.cpu_s
                    sitting.samples.append([number, base[0] + at_s, used_s, now.memory_bytes])
                register.people = number + 1
                yield request

        crowd.ask(watched(), register.hear)
        after = room.used()
        sitting.took_s += time.perf_counter() - began_s
        sitting.client_s += time.process_time() - client_s
    sitting.server_s += after.cpu_s - before.cpu_s
    sitting.memory_before_bytes = sitting.memory_before_bytes or before.memory_bytes
    sitting.memory_after_bytes = after.memory_bytes
    sitting.sittings += 1


def _restart(room: ServedRoom, people: int) -> dict[str, Any]:
    """Start the room again: how long it was away, and whether the next person is behind all others."""
    began_s = time.perf_counter()
    room.end()
    room.start()
    back_s, answers = time.perf_counter() - began_s, list[bytes]()
    with Crowd(room.port, 1) as one:
        one.ask(asks(1), answers.append)
    found = _position(answers[0])
    return {"back_s": back_s, "next_is_right": found is not None and int(found[1]) == people + 1}


def _redis_bytes(client: "redis.Redis") -> int:
    told: Any = client.info("memory")
    return int(told["used_memory"])
