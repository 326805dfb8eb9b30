"""`frontrow storm` loads a server that consents, and only that one; it ends by itself and checks what was sold (D6)."""

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from frontrow.app.storm_tokens import make_storm_event, make_storm_token
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.boxoffice.seats.model.map_format import Snapshot, write_snapshot
from frontrow.cli.storm import storm
from frontrow.cli.storm_token import storm_token
from frontrow.core.errors import InvalidInput
from frontrow.rehearsal.http_client import ConnectionPool, Target
from frontrow.rehearsal.seat_counts import SeatCounts, count_seats
from frontrow.rehearsal.server_consent import ServerConsent, StormNotAllowed, ask_consent
from frontrow.rehearsal.storm import Storm, StormResult, check_record
from frontrow.rehearsal.storm_fans import FanDraw, RequestPacer, RoomWatch, StormFan, StormGround
from frontrow.rehearsal.storm_plan import STORM_PLAN, StormPlan
from frontrow.rehearsal.storm_process import draw_fans
from frontrow.rehearsal.storm_record import FanOutcome, StormRecord, pack_record, unpack_record
from frontrow.rehearsal.storm_report import write_json, write_storm_report
from frontrow.shared.derived_keys import Secrets
from frontrow.web.platform.storm_consent import StormConsent, StormRefused, read_consent, write_consent
from tests.web.api.support import EVENT_ID, SECRET, a_client, a_platform, a_server, one_row

QUICK = STORM_PLAN.changed(
    people=30,
    after_s=1.0,
    reaction_s=0.05,
    browse_s=0.1,
    payment_s=0.1,
    abandon_hold=0.1,
    payment_fails=0.1,
    poll_s=1.0,
)
PLAIN = RoomRules(human="none")  # the fans of a storm are programs
HERE = Target("127.0.0.1", 1, "127.0.0.1")
CONSENT = ServerConsent(HERE, EVENT_ID, "2030-01-01T00:00:00Z", True, "none", True, "50/second", 60, 60, 0)


def token_for(event_id: str = EVENT_ID, until_s: int = 4_000_000_000, secret: str = SECRET) -> str:
    return write_consent(Secrets(secret.encode()), StormConsent(event_id, until_s))


def run(command: Callable[..., None], *arguments: str) -> Result:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, arguments)


async def test_d6_a_storm_buys_whole_purchases_and_what_it_saw_is_what_the_ledger_says(tmp_path):
    async with a_server(tmp_path, one_row(120), room=PLAIN, trusted_proxies=("127.0.0.1",)) as (platform, url):
        consent = await ask_consent(url, token_for())
        assert consent.simulated_payments
        assert consent.counts_each_fan, "the storm stands for a proxy that the server trusts"
        assert (consent.seats, consent.free) == (120, 120)
        plan = StormPlan(consent.target, consent.event_id, QUICK, length_s=60.0, connections=20, processes=2)
        result = await asyncio.to_thread(Storm(plan, consent).run)
        record = result.record
        assert result.fine, result.checks
        assert record.arrived == 30
        assert record.outcomes[FanOutcome.BOUGHT] == record.bookings > 0
        assert not record.outcomes[FanOutcome.CUT_OFF], "it ended because every journey had"
        rows = await platform.ledger.store.read(Query("bookings_by_state", params=(EVENT_ID,)))
        sold = [(bookings, seats) for state, _, bookings, seats, _ in rows if state == "confirmed"]
        assert sold == [(record.bookings, record.seats_bought)]
        check_report(result)
        await check_ctrl_c(tmp_path, url)


def check_report(result: StormResult) -> None:
    page = write_storm_report(result)
    assert page.count("<svg") == 6
    assert "No seat was sold twice" in page
    assert not re.search(r"(src|href)=", page), "one file, nothing from elsewhere"
    HTMLParser().feed(page)
    figures = json.loads(json.dumps(write_json(result)))
    assert figures["arrived"] == sum(figures["outcomes"].values()) == 30
    steps = ("page", "event", "join", "status", "claim", "map", "seats", "hold", "pay", "tickets")
    assert all(figures["latencies"][step]["count"] >= 1 for step in steps)
    assert figures["requests"] == sum(second["requests"] for second in figures["seconds"])


async def check_ctrl_c(tmp_path, url: str) -> None:
    """The command, interrupted while fans think: the report of what was seen, and exit code 0."""
    slow = "[rehearsal]\npeople = 5\nafter_s = 1\nbrowse_s = 60\n"
    (tmp_path / "storm.toml").write_text(slow)
    more = ("-c", str(tmp_path / "storm.toml"), "--json", str(tmp_path / "seen.json"), "--processes", "1")
    command = [sys.executable, "-m", "frontrow.cli.main", "storm", url, "--token", token_for(), *more]
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, **pipes)
    try:
        assert process.stdout is not None
        assert b"consents" in await process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said, errors = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert process.returncode == 0, errors.decode()
    assert b"Traceback" not in errors
    assert "No seat was sold twice" in said.decode()
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["arrived"] == sum(seen["outcomes"].values()) <= 5


async def test_d6_a_server_consents_only_to_its_own_token_that_has_not_ended_and_names_its_event(tmp_path):
    async with a_platform(tmp_path, one_row(4)) as platform, a_client(platform) as client:
        refused = {
            token_for(secret="another server's secret key, long enough"): 403,
            token_for(until_s=1): 403,
            token_for()[:-1] + "A" * 2: 403,
            "frt_": 403,
            "frt_ä.1.x": 403,
            token_for("evt_elsewhere"): 404,
        }
        for token, status in refused.items():
            reply = await client.post("/v1/storm", json={"token": token})
            assert reply.status_code == status, (token, reply.text)
        reply = await client.post("/v1/storm", json={"token": token_for()})
        assert (reply.status_code, reply.json()["event"]) == (200, EVENT_ID)
        assert reply.json()["payments"] == "simulated"


def test_a_consent_ends_at_its_second_and_survives_no_change():
    secrets, consent = Secrets(b"key"), StormConsent("evt_a.b", 100)
    token = write_consent(secrets, consent)
    assert read_consent(secrets, token, 99_999_999) == consent
    with pytest.raises(StormRefused, match="ended"):
        read_consent(secrets, token, 100_000_000)
    for at in range(len(token)):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        if changed != token:
            with pytest.raises(StormRefused):
                read_consent(secrets, changed, 0)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "not as a Frontrow server does"),
        (b'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{"event":"evt_"}', "not as a Frontrow server does"),
        (b"HTTP/1.1 302 Found\r\nlocation: http://victim.example/\r\ncontent-length: 0\r\n\r\n", "answered 302"),
        (b"", "does not answer"),
    ],
)
async def test_d6_a_stranger_gets_one_question_and_no_storm(answer, why):
    async with stub_server([answer]) as (port, heard):
        with pytest.raises(StormNotAllowed, match=why):
            await ask_consent(f"http://127.0.0.1:{port}", token_for())
        assert len(heard) == 1
        assert heard[0].startswith(b"POST /v1/storm ")


@pytest.mark.parametrize(
    ("url", "token", "why"),
    [
        ("http://127.0.0.1:9", "", "without the consent of the"),
        ("http://127.0.0.1:9", "let me in", "frontrow storm-token"),
        ("127.0.0.1:9", token_for(), "not an address like"),
        ("http://127.0.0.1:9/shop", token_for(), "not an address like"),
        ("http://nowhere.invalid", token_for(), "has no address"),
    ],
)
def test_d6_the_command_refuses_in_one_sentence(url, token, why, monkeypatch):
    monkeypatch.delenv("FRONTROW_STORM_TOKEN", raising=False)
    done = run(storm, url, "--token", token)
    assert done.exit_code == 2
    assert why in done.output.replace("\n", " ")


async def test_a_token_is_made_where_the_secret_key_is_and_for_an_event_that_is_made_up(tmp_path):
    async with a_platform(tmp_path, one_row(4)) as platform, a_client(platform) as client:
        event_id = await make_storm_event(platform.settings, 300)
        await platform.box_office.openings.refresh()
        token = make_storm_token(platform.settings, event_id, 60)
        reply = await client.post("/v1/storm", json={"token": token})
        assert (reply.status_code, reply.json()["event"]) == (200, event_id)
        assert (await client.get(f"/v1/events/{event_id}")).json()["seats"] == 300


def test_a_token_needs_the_servers_key_and_one_event(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FRONTROW_SECRET_KEY", raising=False)
    for arguments in ((), (EVENT_ID, "--seats", "300")):
        assert "name an event, or give --seats" in run(storm_token, *arguments).output.replace("\n", " ")
    keyless = run(storm_token, EVENT_ID, "--folder", str(tmp_path))
    assert keyless.exit_code == 2
    assert "there is no secret key" in keyless.output
    monkeypatch.setenv("FRONTROW_SECRET_KEY", SECRET)
    made = run(storm_token, EVENT_ID, "--minutes", "5").output.strip()
    until_s = int(made.split(".")[1])
    assert made == token_for(until_s=until_s)
    assert 0 < until_s - time.time() <= 300


class QuickClock:
    """A storm's clock on which sleeping takes no time."""

    def __init__(self) -> None:
        self.at_s = 0.0
        self.slept: list[float] = []

    def now_s(self) -> float:
        return self.at_s

    async def sleep_until(self, at_s: float) -> None:
        if at_s > self.at_s:
            self.slept.append(round(at_s - self.at_s, 6))
            self.at_s = at_s
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def stub_server(answers: list[bytes]) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Gives these answers, one per request; the last again and again."""
    heard: list[bytes] = []
    ended: list[asyncio.Event] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.Event())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"content-length: (\d+)", head)
                await reader.readexactly(int(found[1]) if found else 0)
                heard.append(head)
                answer = answers[min(len(heard), len(answers)) - 1]
                if not answer:
                    break
                writer.write(answer)
        writer.close()
        await writer.wait_closed()
        ended[-1].set()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard
        for connection in ended:
            await connection.wait()


BUSY = b'HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 21\r\n\r\n{"code":"overloaded"}'
GONE = b'HTTP/1.1 403 No\r\ncontent-length: 20\r\n\r\n{"code":"forbidden"}'


async def test_d6_a_fan_waits_as_long_as_a_refusal_asks_and_the_refusals_are_counted_by_reason():
    clock, record = QuickClock(), StormRecord()
    async with stub_server([BUSY, BUSY, GONE]) as (port, heard):
        target = Target("127.0.0.1", port, "127.0.0.1")
        pool, draw = ConnectionPool(target, 1), draw_fans(QUICK, 0, 1)[0]
        ground = StormGround(EVENT_ID, clock, pool, RequestPacer(1000.0), RoomWatch(clock), record, 60.0, True)
        await StormFan(draw, ground).run()
        await pool.aclose()
    assert clock.slept == [7, 7]
    assert len(heard) == 3
    assert record.refusals == {"page: overloaded": 2, "page: forbidden": 1}
    assert record.outcomes == {FanOutcome.TURNED_AWAY: 1}
    assert record.arrived == 1


def test_latencies_count_from_when_a_request_was_meant_to_be_sent():
    record = StormRecord()
    record.record_reply("hold", meant_s=1.0, sent_s=3.0, done_s=3.5)
    rows = record.latencies()
    assert rows["hold"]["p50_ms"] == pytest.approx(2500, rel=0.001)
    assert rows["sent late"]["p50_ms"] == pytest.approx(2000, rel=0.001)


def test_records_of_several_processes_join_and_joining_changes_none_of_them():
    one, two = StormRecord(), StormRecord()
    for record, seat in ((one, "A"), (two, "B")):
        record.record_reply("hold", 0.0, 0.1, 0.2)
        record.record_wait(0.0, 2.0)
        record.record_tickets([{"ticket": f"tkt_{seat}", "seat": seat}])
        record.outcomes[FanOutcome.BOUGHT.value] += 1
    for _ in range(2):
        total = StormRecord()
        total.add(unpack_record(pack_record(one)))
        total.add(two)
        assert total.latencies()["hold"]["count"] == 2
        assert total.tickets == {"tkt_A": "A", "tkt_B": "B"}
        assert len(total.waits) == total.seconds[0].requests == 2
    assert one.latencies()["hold"]["count"] == 1


def bought(**changes: object) -> StormRecord:
    """What a storm of two buyers should look like."""
    values = {
        "tickets": {"tkt_1": "A-1", "tkt_2": "A-2"}, "bookings": 2, "seats_bought": 2, "arrived": 2,
    }  # fmt: skip
    record = StormRecord(**{**values, **changes})  # type: ignore[arg-type]
    record.outcomes[FanOutcome.BOUGHT.value] = 2
    return record


def seats_after(sold: int) -> SeatCounts:
    return SeatCounts(60 - sold, 0, sold)


def nobody() -> StormRecord:
    return StormRecord()


def cut_off(**changes: object) -> StormRecord:
    """One of the two was still there at the end."""
    record = bought(**changes)
    record.outcomes.clear()
    record.outcomes.update({FanOutcome.BOUGHT.value: 1, FanOutcome.CUT_OFF.value: 1})
    return record


SEATS, TICKETS = "No seat was sold twice", "Every seat that was paid has its ticket"
MAP, ENDS = "The seats that fans bought are sold on the map, and no others", "Every fan's journey has one end"
ANSWERS = "No fan got a wrong answer"


@pytest.mark.parametrize(
    ("record", "after", "broken", "unchecked"),
    [
        (bought(), seats_after(2), set(), set()),
        (bought(tickets={"tkt_1": "A-1", "tkt_2": "A-1"}), seats_after(2), {SEATS}, set()),
        (bought(tickets_twice=1), seats_after(2), {SEATS}, set()),
        (bought(tickets={"tkt_1": "A-1"}), seats_after(2), {TICKETS}, set()),
        (bought(tickets={"tkt_1": "A-1"}, seats_awaiting_tickets=1), seats_after(2), {TICKETS}, set()),
        (cut_off(tickets={"tkt_1": "A-1"}, seats_awaiting_tickets=1), seats_after(2), set(), {TICKETS}),
        (cut_off(tickets={"tkt_1": "A-1"}), seats_after(2), {TICKETS}, set()),
        (bought(), seats_after(1), {MAP}, set()),
        (bought(), seats_after(3), {MAP}, set()),
        (cut_off(seats_unsure=1), seats_after(3), set(), set()),
        (cut_off(seats_unsure=1), seats_after(4), {MAP}, set()),
        (bought(), None, set(), {MAP}),
        (bought(arrived=3), seats_after(2), {ENDS}, set()),
        (nobody(), seats_after(0), set(), {SEATS, TICKETS, MAP, ENDS, ANSWERS}),
        (nobody(), seats_after(1), {MAP}, {SEATS, TICKETS, ENDS, ANSWERS}),
    ],
)
def test_d6_each_check_balances_or_says_that_it_was_not_checked(record, after, broken, unchecked):
    checks = check_record(record, CONSENT, after)
    assert {check.what for check in checks if check.holds is False} == broken
    assert {check.what for check in checks if check.holds is None} == unchecked
    result = StormResult(StormPlan(HERE, EVENT_ID), CONSENT, record, 1.0, after, tuple(checks))
    assert result.fine == (not broken)
    assert write_storm_report(result).count("not checked:") == len(unchecked)


@pytest.mark.parametrize(
    ("fan_counts", "limit", "enters"),
    [
        (True, "50/second", True),
        (False, "50/second", False),
        (False, "3000/second", True),
        (False, "6000/minute", False),
        (False, "100 per hour", False),
        (False, "of your own", False),
    ],
)
def test_d6_a_crowd_enters_if_each_fan_counts_or_if_one_address_may_send_as_much(fan_counts, limit, enters):
    consent = dataclasses.replace(CONSENT, counts_each_fan=fan_counts, per_address=limit)
    assert consent.lets_a_crowd_in(2_000.0) is enters


async def test_d6_a_storm_whose_fans_share_one_address_stops_at_once(tmp_path):
    """Nearly all of its requests would be refused, and yet nothing would be wrong in its report."""
    async with a_server(tmp_path, one_row(120), room=PLAIN) as (platform, url):
        done = await asyncio.to_thread(run, storm, url, "--token", token_for(), "--people", "2000")
        assert done.exit_code == 2
        assert "counts all fans of this machine as one address, which may send 1000/second" in done.output
        assert "server.trusted_proxies" in done.output
        rows = await platform.ledger.store.read(Query("bookings_by_state", params=(EVENT_ID,)))
        assert rows == [], "nothing was sent"


def test_d6_storm_md_works_from_the_first_line_to_the_report(tmp_path):
    """Its own commands: a demo, a token for a made-up event that is open by then, a storm whose fans are let in."""
    found = re.findall(r"^frontrow (?:serve|storm) .*$", Path("docs/storm.md").read_text(), re.MULTILINE)
    serve_words, storm_words = found[0].partition("  #")[0].split(), found[1]
    assert serve_words == ["frontrow", "serve", "--demo"]
    made = re.search(r'--token "\$\(frontrow (storm-token --seats 2000)\)"', storm_words)
    assert made is not None, storm_words
    here = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
    command = [sys.executable, "-m", "frontrow.cli.main"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True, "cwd": tmp_path, "env": here}
    with subprocess.Popen([*command, *serve_words[1:], "--port", "0"], **pipes) as server:
        try:
            url = server.stdout.readline().split()[-1]
            token = subprocess.check_output([*command, *made[1].split()], cwd=tmp_path, env=here, text=True)
            rest = storm_words.split('2000)"', 1)[1].replace("2000", "60").split()  # fewer people: it is a test
            (tmp_path / "quick.toml").write_text("[rehearsal]\nafter_s = 2\nbrowse_s = 0.2\npayment_s = 0.2\n")
            words = ["storm", url, "--token", token.strip(), *rest, "--json", "seen.json", "-c", "quick.toml"]
            done = subprocess.run([*command, *words], capture_output=True, text=True, cwd=tmp_path, env=here)
        finally:
            server.terminate()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("✓") == 6, done.stdout
    assert "not checked" not in done.stdout
    assert "<svg" in (tmp_path / "storm.html").read_text()
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["after"]["sold"] - seen["sold_before"] == seen["seats_bought"] > 0
    assert not [reason for reason in seen["refusals"] if "rate" in reason or "limit" in reason]


@pytest.mark.parametrize("change", [{"length_s": 7200}, {"connections": 0}, {"requests_per_s": 1e9}, {"processes": 65}])
def test_d6_a_storm_is_bounded(change):
    with pytest.raises(InvalidInput, match="must be from"):
        StormPlan(HERE, EVENT_ID, **change)
    with pytest.raises(InvalidInput, match="at most"):
        StormPlan(HERE, EVENT_ID, STORM_PLAN.changed(people=2_000_000))


def test_the_seats_of_a_map_are_counted_as_the_server_writes_them():
    states = bytes([0, 1, 2, 3, 2, 0, 2])
    assert count_seats(write_snapshot(Snapshot(states, 5, 7))) == SeatCounts(2, 1, 3)
    for rubbish in (b"", b"<html>", write_snapshot(Snapshot(states, 5, 7))[:-1]):
        assert count_seats(rubbish) is None


def test_the_pacer_lets_no_more_through_than_the_bound():
    pacer = RequestPacer(100.0)
    times = [pacer.reserve(0.0) for _ in range(200)]
    assert times == sorted(times)
    assert sum(1 for at_s in times if at_s < 1.0) <= 111, "a second's worth, and a burst of a tenth"


def test_the_processes_share_the_crowd_of_the_seed_between_them():
    whole = draw_fans(QUICK, 0, 1)
    halves = [*draw_fans(QUICK, 0, 2), *draw_fans(QUICK, 1, 2)]
    assert sorted(halves, key=lambda draw: draw.number) == whole
    assert len({draw.address for draw in whole}) == 30
    assert isinstance(whole[0], FanDraw)
