"""`make bench-scale` with small numbers: its client, what it counts, how it ends, and what it writes into the docs."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench import room_scale_docs
from bench.room_crowd import Crowd
from bench.room_joins import REGISTER, SUMS, TELL_EVERY, Register, asks, measure_joins
from bench.room_scale import main, problems, read_found
from bench.room_storms import Viewers, _is_worse, _Status
from tests.support.eventually import eventually_sync

ROOT = Path(__file__).parent.parent
SMALL = ["--people", "3000", "--redis-people", "600", "--requests", "300", "--streams", "40", "--storms", "1"]
WITHIN_S = 900
pytestmark = pytest.mark.xdist_group("room scale")  # one run of a minute for all


def answer_of(position: int, status: bytes = b"201 Created") -> bytes:
    body = b'{"place":"a.b.c","position":%d,"ahead":0}' % position
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "bench.room_scale", "--folder", str(folder), *words]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one whole run at real servers."""
    folder = tmp_path_factory.mktemp("scale")
    done = subprocess.run(command(folder, *SMALL), cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


# -- the client ----------------------------------------------------------------------------------------------------


def talk(pieces: list[bytes], hear: Callable[[bytes], None], *, ends_before: int = 0) -> None:
    """Let a crowd of one ask a server that answers with these pieces and closes, after closing some without a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for number in range(ends_before + 1):
                line, _ = listening.accept()
                with line:
                    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    line.recv(1_000)
                    for piece in pieces if number == ends_before else ():
                        line.sendall(piece)

        server = threading.Thread(target=serve)
        server.start()
        try:
            with Crowd(listening.getsockname()[1], 1) as crowd:
                crowd.ask(asks(1), hear)
        finally:
            server.join(30)


@pytest.mark.parametrize("cut", [1, 30, 60, -1])
def test_an_answer_that_comes_in_pieces_is_told_whole(cut: int) -> None:
    whole, heard = answer_of(7), list[bytes]()
    talk([whole[:cut], whole[cut:]], heard.append)
    assert heard == [whole]


def test_a_connection_that_ends_in_an_answer_is_told() -> None:
    heard: list[bytes] = []
    with pytest.raises(ConnectionResetError, match="ended a connection"):
        talk([answer_of(7)[:-1]], heard.append)
    assert not heard


def test_an_idle_connection_that_the_server_ended_is_opened_anew_once() -> None:
    heard: list[bytes] = []
    talk([answer_of(7)], heard.append, ends_before=1)
    assert heard == [answer_of(7)]
    with pytest.raises(ConnectionResetError, match="two connections"):
        talk([], heard.append, ends_before=1)


def test_everybody_asks_from_an_address_of_their_own() -> None:
    found = [line for ask in asks(70_000) for line in ask.split(b"\r\n") if line.startswith(b"X-Forwarded-For")]
    assert len(set(found)) == 70_000
    assert found[65_537] == b"X-Forwarded-For: 10.1.0.1"
    assert list(asks(70_000, 69_999)) == [ask for number, ask in enumerate(asks(70_000)) if number == 69_999]


# -- what is counted ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("positions", "found"),
    [
        ([1, 2, 3], {}),
        ([3, 1, 2], {}),
        ([1, 3, 4], {"gaps": 1, "beyond": 1}),
        ([1, 2, 2], {"gaps": 1, "doubles": 1}),
        ([0, 1, 2], {"gaps": 1, "beyond": 1}),
        ([1, 2], {"gaps": 1}),
    ],
)
def test_the_register_finds_gaps_and_doubles(positions: list[int], found: dict[str, int]) -> None:
    register = Register(3, people=3)
    for position in positions:
        register.hear(answer_of(position))
    assert {name: getattr(register, name) for name in ("gaps", "doubles", "beyond") if getattr(register, name)} == found
    assert register.is_exact == (not found)


def test_a_refused_join_is_no_position() -> None:
    register = Register(2, people=2)
    register.hear(answer_of(1))
    register.hear(answer_of(2, b"503 Service Unavailable"))
    assert (register.refused, register.gaps, register.is_exact) == (1, 1, False)
    assert b"503" in register.odd


@pytest.mark.parametrize(
    ("now", "is_worse"),
    [
        (_Status("waiting", 9, 5), False),
        (_Status("waiting", 9, 3), False),
        (_Status("waiting", 9, 6), True),
        (_Status("active", 9, 0), False),
        (_Status("expired", 9, 0), True),
        (None, True),
    ],
)
def test_a_place_is_worse_with_more_people_ahead_or_when_it_is_gone(now: _Status | None, is_worse: bool) -> None:
    assert _is_worse(_Status("waiting", 9, 5), now) == is_worse


def test_a_window_that_goes_back_is_counted() -> None:
    viewers = Viewers(1, 2)
    try:
        for viewer, high in ((0, 5), (1, 4), (0, 6), (1, 3), (1, 4)):
            frame = b'event: now-serving\ndata: {"e":"aurora","l":[[0,%d,9]],"r":[0]}\n\n' % high
            viewers._read(viewer, frame, storm=1)
        assert (viewers.frames, viewers.set_back, viewers.served) == (5, 1, 2)
    finally:
        viewers.close()


def test_what_must_hold_is_said_when_it_does_not() -> None:
    exact = {"exact": True, "next_is_right": True, "worse": 0, "set_back": 0, "unserved": 0}
    assert problems("joins", exact) == problems("streams", exact) == []
    gap = dict.fromkeys(("people", "gaps", "doubles", "beyond", "refused"), 1) | {"exact": False, "odd": ""}
    assert len(problems("redis_joins", exact | gap)) == 1
    assert len(problems("joins", exact | {"next_is_right": False})) == 1
    assert len(problems("streams", exact | {"worse": 1})) == 1
    assert len(problems("streams", exact | {"unserved": 1})) == 1
    assert len(problems("streams", exact | {"exact": False})) == 1


# -- a whole run ---------------------------------------------------------------------------------------------------


@pytest.mark.timeout(WITHIN_S)
def test_a_small_crowd_gets_every_position_once(measured: Path) -> None:
    found = read_found(measured)
    for part, people in (("joins", 3_000), ("redis_joins", 600)):
        told = found[part]
        assert (told["people"], told["answers"], told["exact"], told["next_is_right"]) == (people, people, True, True)
        assert told["server_us"] > 0
        assert told["client_us"] > 0
        assert told["memory_after_bytes"] > 0
        assert told["audit_bytes"] > 0
    assert found["redis_joins"]["processes"] == 2
    assert found["redis_joins"]["redis_us"] > 0
    assert 0 < found["redis_joins"]["redis_room_bytes"] < 10_000, "bytes for the room, not for each person"
    assert not (measured / "room_joins").exists(), "all have joined"


@pytest.mark.timeout(WITHIN_S)
def test_the_cache_answers_for_the_origin_only_what_is_for_everybody(measured: Path) -> None:
    edge = read_found(measured)["edge"]
    assert all(row["requests"] == 300 for name, row in edge.items() if name != "machine")
    assert edge["now-serving, nginx"]["at_origin"] < 300
    assert edge["now-serving, nginx"]["answers"]["HIT"] > 0
    assert [edge[name]["at_origin"] for name in ("now-serving, direct", "status, direct", "status, nginx")] == [300] * 3


@pytest.mark.timeout(WITHIN_S)
def test_everybody_is_served_again_after_each_storm(measured: Path) -> None:
    told = read_found(measured)["streams"]
    assert [storm["kind"] for storm in told["storms"]] == ["dropped", "restarted", "killed"]
    assert (told["streams"], told["worse"], told["set_back"], told["unserved"], told["exact"]) == (40, 0, 0, 0, True)
    assert told["storms"][2]["tries_that_failed"] >= 40, "the server was away"


@pytest.mark.timeout(WITHIN_S)
def test_the_docs_get_the_figures_of_the_file(measured: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "scaling.md", tmp_path / "picture.png"
    shutil.copy(room_scale_docs.PAGE, page)
    found = read_found(measured)
    room_scale_docs.write(found, measured / "room_scale.png", page, picture)
    text = page.read_text()
    assert "| people who joined | 3,000 | 600 |" in text
    assert "### The machines for 10,000,000 people in 10 minutes (arithmetic)" in text
    assert f"| server: joins | 50,000 | {found['redis_joins']['server_us']:.1f} |" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert text.count("<!-- figures: room-scale -->") == 1


def test_the_page_has_a_place_for_the_figures() -> None:
    assert room_scale_docs.PAGE.read_text().count("<!-- figures: room-scale -->") == 1


def test_docs_are_not_written_of_half_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "room_scale.json").write_text("{}")
    before = room_scale_docs.PAGE.read_bytes(), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        assert main(["--only", "docs", "--docs", "--folder", str(tmp_path)]) == 1
    finally:
        signal.signal(signal.SIGINT, before[1])
        signal.signal(signal.SIGTERM, before[2])
    assert "not measured to the end yet: joins, redis_joins, edge, streams" in capsys.readouterr().out
    assert room_scale_docs.PAGE.read_bytes() == before[0]


def test_more_people_than_addresses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["--people", "16777217", "--folder", str(tmp_path)])


def test_a_page_asks_less_often_the_longer_it_waits() -> None:
    assert room_scale_docs.polls_per_s(1_000, 500) == 1_000 / 5, "two seconds: the shortest interval"
    assert room_scale_docs.polls_per_s(10_000_000, 500) < 10_000_000 / 200
    assert room_scale_docs.polls_per_s(10_000_000, 500) > 10_000_000 / 300


# -- how it ends ---------------------------------------------------------------------------------------------------


@pytest.mark.timeout(WITHIN_S)
def test_joins_that_are_stopped_go_on_where_they_were(tmp_path: Path) -> None:
    """Ended by a signal in the middle, the run says how far it was, leaves no server, and the next goes on there."""
    wanted, kept = 2_000_000, tmp_path / "room_joins"
    words = command(tmp_path, "--only", "joins", "--people", str(wanted))
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        eventually_sync(lambda: _audit_bytes(kept) > 500_000, 120)
        servers = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, signal.SIGTERM)
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, said
    assert servers
    assert not [server for server in servers if server.is_running()]
    first: dict[str, Any] = read_found(tmp_path)["joins"]
    assert 0 < first["people"] < wanted
    assert first["exact"]
    assert b"not measured to the end yet: joins" in said
    answers = iter([False, False, True])
    second = measure_joins(wanted, lambda done: None, lambda: next(answers), kept=kept)
    assert second["people"] == first["people"] + 2 * TELL_EVERY
    assert second["exact"]
    assert second["sittings"] == 2
    assert second["server_us"] > 0
    assert sorted(path.name for path in kept.iterdir()) == [REGISTER, "room", SUMS]
    counted = json.loads((kept / SUMS).read_text())["counts"]
    assert counted["answers"] == second["people"]
    (kept / SUMS).unlink()  # as a sitting that was killed leaves it: nobody knows what was answered
    answers = iter([False, True])
    third = measure_joins(wanted, lambda done: None, lambda: next(answers), kept=kept)
    assert (third["people"], third["exact"], third["sittings"]) == (TELL_EVERY, True, 1)


def _audit_bytes(kept: Path) -> int:
    return sum(path.stat().st_size for path in (kept / "room").glob("audit.sqlite*"))
