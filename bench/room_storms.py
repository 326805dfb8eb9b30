"""Open streams of a room in storms: all connections dropped, the server restarted, the server killed.

Every viewer has a place of their own. Whose connection was dropped comes back at once, all in the same moment; who
finds no server tries again after a second or more. Measured is how long it takes until everybody has a frame again, the
server's CPU and memory, and that nobody's place is worse.
"""

import errno
import heapq
import random
import re
import select
import signal
import socket
import struct
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.room import get
from bench.room_crowd import HEAD, Crowd
from bench.room_joins import asks
from bench.room_processes import ServedRoom, served_room
from bench.room_streams import SPARE_FILES, many_files
from frontrow.waitingroom.credentials.places import unb64

STREAM = b"GET /stream HTTP/1.1\r\n" + HEAD.replace(b"*/*", b"text/event-stream") + b"\r\n"
BIND_ADDRESS_NO_PORT = 24  # IP_BIND_ADDRESS_NO_PORT of Linux: the port is chosen when the connection is made
PER_ADDRESS = 4_096  # viewers of one loopback address, which has some 28,000 ports
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: an end without a goodbye, as when a network goes
BACK_S = (1.0, 3.0)  # who is refused or cut off tries again after so long, as a browser does
SERVED_WITHIN_S = 400.0
ALONE_S = 6.0  # one viewer: what the server uses anyway
STEADY_FRAMES = 5  # of each viewer, to measure a broadcast
READ_BYTES = 16_384
STORMS = ("dropped", "restarted", "killed")
CONNECTIONS = 64
ROOM = {  # the window moves all the time, and nobody's turn is over before the end
    "CAPACITY": "1000000",
    "WINDOW_SIZE": "25",
    "INTERVAL_S": "5",  # as often as a heartbeat: a busy machine keeps up with 18,000 frames
    "GRACE_S": "86400",
    "MAX_STREAMS": "1000000",
    "PER_IP": "1000000/second",
    "PER_PERSON": "1000000/second",
}
Tell = Callable[[int], None]
_window = re.compile(rb'event: now-serving\ndata: \{[^\n]*"l":\[\[(\d+),(\d+),').search


class _Status(msgspec.Struct):
    state: str
    position: int
    ahead: int = 0


_read_status = msgspec.json.Decoder(_Status).decode


class Viewers:
    """Open streams over raw sockets and one epoll. Who loses the stream comes back until told to end."""

    def __init__(self, port: int, count: int) -> None:
        self._port = port
        self._poll = select.epoll()
        self._lines: dict[int, tuple[socket.socket, int, int]] = {}  # with the viewer and the storm it came in
        self._due: list[tuple[float, int]] = []
        self._chance = random.Random(7)
        self._storm = 0
        self.count = count
        self.highest = array("q", bytes(8 * count))  # the end of the window as each has seen it
        self.begin_storm()
        self.frames = self.refused = self.failed = 0
        self.set_back = 0  # frames with a window that was behind one this viewer had seen

    def close(self) -> None:
        for line, _, _ in self._lines.values():
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            line.close()
        self._lines.clear()
        self._poll.close()

    def begin_storm(self) -> None:
        """From now on only who has connected anew counts as served."""
        self._storm += 1
        self.began_s = time.perf_counter()
        self.served = 0
        self.first_s = array("d", bytes(8 * self.count))  # when each had the first frame in this storm

    def come(self, viewers: range) -> None:
        """Connect them all, as fast as this process can."""
        for number in viewers:
            self._connect(number)

    def drop_all(self) -> None:
        """Cut every connection, and let everybody come back at once."""
        lines = list(self._lines.values())
        self._lines.clear()
        for line, _, _ in lines:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            line.close()  # epoll forgets it
        for _, number, _ in lines:
            self._connect(number)

    def until_served(self) -> list[float]:
        """Go on until everybody has had a frame in this storm, or the time is up; how long each waited, in order."""
        deadline_s = self.began_s + SERVED_WITHIN_S
        while self.served < self.count and time.perf_counter() < deadline_s:
            self.turn_for(0.05)
        if not self.served:
            raise SystemExit(f"none of {self.count} viewers were served in {SERVED_WITHIN_S:g} s")
        return sorted(at_s - self.began_s for at_s in self.first_s if at_s)

    def turn_for(self, wait_s: float) -> None:
        """Read what comes in for about so long."""
        until_s = time.perf_counter() + wait_s
        while (left_s := until_s - time.perf_counter()) > 0:
            while self._due and self._due[0][0] <= time.perf_counter():
                self._connect(heapq.heappop(self._due)[1])
            for fd, event in self._poll.poll(min(left_s, 0.02), 4_096):
                self._handle(fd, event)

    def _connect(self, number: int) -> None:
        line = socket.socket()
        line.setblocking(False)
        line.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
        line.bind((f"127.1.{number // PER_ADDRESS}.1", 0))
        code = line.connect_ex(("127.0.0.1", self._port))
        if code not in (0, errno.EINPROGRESS):
            line.close()
            self._again(number)
            return
        self._lines[line.fileno()] = line, number, self._storm
        self._poll.register(line.fileno(), select.EPOLLOUT)

    def _again(self, number: int) -> None:
        self.failed += 1
        heapq.heappush(self._due, (time.perf_counter() + self._chance.uniform(*BACK_S), number))

    def _handle(self, fd: int, event: int) -> None:
        if fd not in self._lines:
            return
        line, number, storm = self._lines[fd]
        try:
            if event & select.EPOLLOUT:
                line.send(STREAM)
                self._poll.modify(fd, select.EPOLLIN)
                return
            data = line.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data.startswith(b"HTTP/1.1 503"):
            self.refused += 1
        elif data:
            self._read(number, data, storm)
            return
        del self._lines[fd]
        line.close()
        self._again(number)

    def _read(self, number: int, data: bytes, storm: int) -> None:
        found = _window(data)
        if found is None:
            return  # an end of a body, or a comment
        self.frames += 1
        high = int(found[2])
        self.set_back += high < self.highest[number]
        self.highest[number] = max(high, self.highest[number])
        if storm == self._storm and not self.first_s[number]:
            self.first_s[number] = time.perf_counter()
            self.served += 1


def measure_storms(streams: int, rounds: int, tell: Tell) -> dict[str, Any]:
    """Open so many streams, then each kind of storm in turn, `rounds` times."""
    with (
        many_files() as most,
        tempfile.TemporaryDirectory() as name,
        served_room(Path(name) / "room", **ROOM) as room,
    ):
        count = min(streams, most - 2 * SPARE_FILES)
        places = list(_join(room, count))
        viewers = Viewers(room.port, count)
        try:
            return _measure(room, viewers, places, rounds, tell) | {"files_allowed": most}
        finally:
            viewers.close()


def _measure(room: ServedRoom, viewers: Viewers, places: list[bytes], rounds: int, tell: Tell) -> dict[str, Any]:
    viewers.come(range(1))
    viewers.turn_for(1.0)
    before_s = room.used().cpu_s
    viewers.turn_for(ALONE_S)
    alone, began_s = room.used(), time.perf_counter()
    viewers.come(range(1, viewers.count))
    opened_s, full = viewers.until_served()[-1] + viewers.began_s - began_s, room.used()
    steady_us = _steady(room, viewers, (alone.cpu_s - before_s) / ALONE_S)
    tell(1)
    standing, storms = _standing(room, places), []
    if len(standing) != viewers.count:
        raise SystemExit(f"before the first storm {len(standing)} of {viewers.count} people have a place")
    for number, kind in enumerate(STORMS * rounds, start=1):
        storm = _storm(room, viewers, kind)
        now = _standing(room, places)
        late = _position_of(next(_join(room, 1)))
        storm |= {
            "worse": sum(_is_worse(was, now.get(position)) for position, was in standing.items()),
            "next_is_right": late == viewers.count + number,
        }
        storms.append(storm)
        standing = now
        tell(number + 1)
    return {
        "streams": viewers.count,
        "opened_s": opened_s,
        "open_cpu_us": (full.cpu_s - alone.cpu_s) / viewers.count * 1e6,
        "bytes_each": (full.memory_bytes - alone.memory_bytes) / max(1, viewers.count - 1),
        "memory_bytes": full.memory_bytes,
        "frame_us": steady_us,
        "storms": storms,
        "set_back": viewers.set_back,
        "worse": sum(storm["worse"] for storm in storms),
        "unserved": sum(storm["unserved"] for storm in storms),
        "exact": all(storm["next_is_right"] for storm in storms),
    }


def _steady(room: ServedRoom, viewers: Viewers, idle: float) -> float:
    """The server's CPU for one frame to one viewer, while nothing else happens, less what it uses anyway."""
    frames, cpu_s, began_s = viewers.frames, room.used().cpu_s, time.perf_counter()
    deadline_s = began_s + SERVED_WITHIN_S
    while viewers.frames - frames < STEADY_FRAMES * viewers.count and time.perf_counter() < deadline_s:
        viewers.turn_for(0.1)
    own_s = room.used().cpu_s - cpu_s - idle * (time.perf_counter() - began_s)
    return max(0.0, own_s) / max(1, viewers.frames - frames) * 1e6


def _storm(room: ServedRoom, viewers: Viewers, kind: str) -> dict[str, Any]:
    """One storm, until everybody is served again."""
    failed, refused, before_s = viewers.failed, viewers.refused, room.used().cpu_s
    viewers.begin_storm()
    if kind == "dropped":
        viewers.drop_all()
    else:
        room.end(signal.SIGTERM if kind == "restarted" else signal.SIGKILL)
        room.launch()
        before_s = 0.0  # of a process that is new
    waits_s, used = viewers.until_served(), room.used()
    return {
        "kind": kind,
        "first_s": waits_s[0],
        "half_s": waits_s[len(waits_s) // 2],
        "last_s": waits_s[-1],
        "unserved": viewers.count - viewers.served,
        "cpu_s": used.cpu_s - before_s,
        "memory_bytes": used.memory_bytes,
        "tries_that_failed": viewers.failed - failed,
        "refused": viewers.refused - refused,
    }


def _join(room: ServedRoom, people: int) -> Iterator[bytes]:
    """So many new places."""
    answers: list[bytes] = []
    with Crowd(room.port, min(CONNECTIONS, people)) as crowd:
        crowd.ask(asks(people), answers.append)
    return (_body(answer, b"201")["place"].encode() for answer in answers)


def _position_of(place: bytes) -> int:
    return int(msgspec.json.decode(unb64(place.split(b".")[1]))["sub"])


def _standing(room: ServedRoom, places: list[bytes]) -> dict[int, _Status]:
    """How everybody stands now, by position."""
    answers: list[bytes] = []
    questions = (get(b"/status", b"Authorization: Bearer " + place + b"\r\n") for place in places)
    with Crowd(room.port, min(CONNECTIONS, len(places))) as crowd:
        crowd.ask(questions, answers.append)
    told = (_read_status(answer.partition(b"\r\n\r\n")[2]) for answer in answers if answer.startswith(b"200", 9))
    return {status.position: status for status in told}


def _is_worse(was: _Status, now: _Status | None) -> bool:
    """Whether somebody has lost the place, has more people ahead or waits again."""
    order = ("expired", "waiting", "active")
    return now is None or now.ahead > was.ahead or order.index(now.state) < order.index(was.state)


def _body(answer: bytes, status: bytes) -> Any:
    if not answer.startswith(status, 9):
        raise SystemExit(f"a wrong answer: {answer[:200]!r}")
    return msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])
