"""The gate (B10): offline checks, admissions recorded, duplicates found when gates sync, and the command line."""

import json
import time
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.gate.gate_bundle import make_bundle, sign_revocations, write_bundle
from frontrow.boxoffice.gate.gate_check import Gate, GateVerdict, ScanLog
from frontrow.boxoffice.gate.gate_service import GateService
from frontrow.boxoffice.gate.model.scans import ReentryNotAllowed, Scan
from frontrow.boxoffice.tickets.ticket_codes import read_code, signed_text, write_code
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.cli.door import app
from frontrow.core.errors import InvalidInput
from tests.boxoffice.shop import shop_event, sqlite_url
from tests.boxoffice.tickets.samples import EVENT, KEYS, NOW, OTHER_KEYS, gate, issued


def test_a_ticket_is_let_in_once_and_a_restart_forgets_nobody(tmp_path: Path) -> None:
    log = ScanLog(tmp_path / "north.jsonl")
    ticket, other = issued(3, 4)
    at = gate(log=log)
    assert (at.check(ticket.code, NOW).verdict, at.check(ticket.code, NOW).seat) == (GateVerdict.WELCOME, "A-1-4")
    again = gate(log=log).check(f" {ticket.code}\n", NOW + 5)
    assert again.verdict is GateVerdict.ALREADY_IN
    assert again.first_scan is not None
    assert again.first_scan.at_us == NOW
    with log.path.open("ab") as file:
        file.write(b'{"id":"cut')  # the power went while writing
    assert gate(log=log).check(other.code, NOW + 6).accepted
    assert [scan.ticket_id for scan in ScanLog(log.path).scans()] == [ticket.id, other.id]


def test_a_ticket_that_somebody_else_signed_is_forged_at_every_gate() -> None:
    """Its fields, its key's name and its checksum are right."""
    body = read_code(issued(3)[0].code).body
    forged = write_code(body, OTHER_KEYS.sign(signed_text(body)))
    assert gate().check(forged, NOW).verdict is GateVerdict.FORGED
    online = GateService(None, KEYS, None)  # type: ignore[arg-type]  # it asks neither
    assert online.verify(EVENT, forged, NOW)[0] is GateVerdict.FORGED


@pytest.mark.parametrize("block", [True, False])
def test_a_gate_without_a_network_follows_the_rule_for_disputed_tickets(block: bool) -> None:
    ticket, other = issued(3, 4)
    rules = {"disputed": [ticket.id], "block_disputed": block, "reentry": True}
    at = Gate(make_bundle(KEYS, EVENT, "Aurora", [], NOW, **rules), "north")
    answer = at.check(ticket.code, NOW)
    assert answer.verdict is (GateVerdict.DISPUTED if block else GateVerdict.WELCOME)
    assert (answer.accepted, answer.disputed) == (not block, True)
    assert not at.check(other.code, NOW).disputed
    assert at.let_out(ticket.code, NOW + 1).accepted, "whoever is inside may leave"
    won = Gate(make_bundle(KEYS, EVENT, "Aurora", [], NOW, block_disputed=block), "north")
    assert won.check(ticket.code, NOW + 2).accepted, "the next bundle has it no more"


def test_an_older_ticket_of_a_seat_stays_outside_once_a_newer_one_came_in(tmp_path: Path) -> None:
    """B12: the seat was given back and resold; the gate has not heard of the revocation yet."""
    log = ScanLog(tmp_path / "scans.jsonl")
    old, new = issued(5, number=1)[0], issued(5, number=2)[0]
    assert gate(log=log).check(new.code, NOW).accepted
    assert gate(log=log).check(old.code, NOW).verdict is GateVerdict.REPLACED
    other = gate("south")
    other.sync(log.scans())
    assert other.check(old.code, NOW).verdict is GateVerdict.REPLACED


def test_gates_that_sync_find_the_ticket_that_came_in_twice() -> None:
    north, south = gate("north"), gate("south")
    twice, once = issued(1, 2)
    for at, ticket, now_us in [(north, twice, NOW), (south, twice, NOW + 9), (south, once, NOW + 10)]:
        assert at.check(ticket.code, now_us).accepted
    scans = [Scan(f"north:{twice.id}:{NOW}", EVENT, twice.id, "north", NOW)]
    found = south.sync(scans)
    assert [(one.ticket_id, [scan.gate for scan in one.scans]) for one in found] == [(twice.id, ["north", "south"])]
    assert [one.ticket_id for one in south.sync(scans * 2)] == []  # the earliest is known already and is the same scan
    fresh = gate("west")
    assert fresh.sync(scans) == []
    assert fresh.check(twice.code, NOW + 20).verdict is GateVerdict.ALREADY_IN


def test_who_left_comes_in_again_at_any_gate_and_nobody_else(tmp_path: Path) -> None:
    log, south = ScanLog(tmp_path / "north.jsonl"), gate("south", reentry=True)
    ticket, other = issued(1, 2)
    at = gate("north", log=log, reentry=True)
    assert at.check(ticket.code, NOW + 1).accepted
    assert at.check(ticket.code, NOW + 2).verdict is GateVerdict.ALREADY_IN
    assert at.let_out(ticket.code, NOW + 3).verdict is GateVerdict.LEFT
    assert gate("north", log=log, reentry=True).let_out(ticket.code, NOW + 4).verdict is GateVerdict.NOT_INSIDE
    assert south.sync(log.scans()) == []
    assert south.check(ticket.code, NOW + 5).accepted
    assert south.check(ticket.code, NOW + 6).verdict is GateVerdict.ALREADY_IN
    assert south.let_out(other.code[:-1], NOW + 7).verdict is GateVerdict.MISREAD
    assert south.let_out(other.code, NOW + 7).verdict is GateVerdict.LEFT  # came in at a gate that has not reported yet
    assert south.let_out(other.code, NOW + 8).verdict is GateVerdict.NOT_INSIDE
    assert south.check(other.code, NOW - 9).accepted  # although its clock was put back
    assert south.check(other.code, NOW + 9).verdict is GateVerdict.ALREADY_IN
    twice = Scan("east:1", EVENT, ticket.id, "east", NOW + 8)
    assert [one.ticket_id for one in south.sync([twice])] == [ticket.id]  # came in at the east gate while inside
    with pytest.raises(ReentryNotAllowed):
        gate().let_out(ticket.code, NOW)


def test_a_newer_revocation_list_kills_a_ticket_and_only_a_signed_one_counts() -> None:
    ticket, kept = issued(1, 2)
    at = gate()
    for bad in (
        sign_revocations(OTHER_KEYS, EVENT, [kept.id], NOW),
        sign_revocations(KEYS, "evt_other", [kept.id], NOW),
        msgspec.structs.replace(sign_revocations(KEYS, EVENT, [], NOW), ids=(kept.id,)),
        msgspec.structs.replace(sign_revocations(KEYS, EVENT, [kept.id], NOW), signature="zz"),
    ):
        with pytest.raises(InvalidInput):
            at.revoke(bad)
    assert at.revoke(sign_revocations(KEYS, EVENT, [ticket.id], NOW)) == 1
    assert at.check(ticket.code, NOW).verdict is GateVerdict.REVOKED
    assert at.check(kept.code, NOW).accepted


def test_gate_check_verifies_offline_and_says_how_long_it_took(tmp_path: Path) -> None:
    """B10: `frontrow door check`: exit codes, the scan log, JSON; the time is in the answer (< 2 ms on a free core)."""
    run = CliRunner().invoke
    bundle, log = tmp_path / "gate.json", tmp_path / "north.jsonl"
    good, dead = issued(1, 2)
    write_bundle(make_bundle(KEYS, EVENT, "Aurora", [dead.id], NOW, ["A-1-1", "A-1-2", "A-1-3"]), bundle)
    options = ["--bundle", str(bundle), "--gate", "north", "--log", str(log)]
    began_s = time.process_time()
    welcome = run(app, ["check", good.code, *options])
    assert time.process_time() - began_s < 60
    assert welcome.exit_code == 0
    assert welcome.output.startswith(f"OK  welcome  A-1-2  {good.id}")
    assert " ms)" in welcome.output
    refused = run(app, ["check", *options, "--json"], input=f"{good.code}\n\n{dead.code}\n{good.code[:-1]}\n")
    assert refused.exit_code == 1
    answers = [json.loads(line) for line in refused.output.splitlines()]
    assert [one["verdict"] for one in answers] == ["already_in", "revoked", "misread"]
    assert all(one["took_ms"] > 0 for one in answers)
    no_exit = run(app, ["check", "--exit", good.code, *options])
    assert (no_exit.exit_code, "does not let people come back" in no_exit.output) == (2, True)
    write_bundle(make_bundle(KEYS, EVENT, "Aurora", [], NOW, reentry=True), bundle)
    assert run(app, ["check", "--exit", good.code, *options]).output.startswith("OK  left; may come back")
    assert run(app, ["check", good.code, *options]).exit_code == 0
    missing = run(app, ["check", good.code, "--bundle", str(tmp_path / "none.json")])
    assert (missing.exit_code, "frontrow door bundle" in missing.output) == (2, True)
    (tmp_path / "bad.json").write_text("{}")
    assert run(app, ["check", good.code, "--bundle", str(tmp_path / "bad.json")]).exit_code == 2


async def test_bundle_and_sync_work_against_a_ledger(tmp_path: Path) -> None:
    """B10: bundle from the ledger, two gates, duplicates flagged on sync and recorded in the ledger."""
    import asyncio

    url, ring = sqlite_url(tmp_path), tmp_path / "ring.json"
    ring.write_text(KEYS.packed())
    ledger = await open_ledger(url)
    await ledger.catalogue.put_event(shop_event(id=EVENT), NOW)
    await ledger.aclose()

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, list(words))
        return done.exit_code, done.output

    made = await asyncio.to_thread(
        run, "bundle", EVENT, "--ledger", url, "--keys", str(ring), "-o", f"{tmp_path}/g.json"
    )
    assert made == (0, f"Aurora: 0 seats, 0 revoked tickets -> {tmp_path}/g.json\n")
    code = issued(1)[0].code
    logs = []
    for name in ("north", "south"):
        logs.append(str(tmp_path / f"{name}.jsonl"))
        admitted = await asyncio.to_thread(
            run, "check", code, "-b", f"{tmp_path}/g.json", "--gate", name, "--log", logs[-1]
        )
        assert admitted[0] == 0
    status, output = await asyncio.to_thread(run, "sync", *logs, "--ledger", url)
    assert (status, output.splitlines()[-1]) == (1, "2 scans, 1 tickets let in more than once")
    alone = await asyncio.to_thread(run, "sync", logs[0])
    told = "compared with each other; there is no ledger here\n1 scans, 0 tickets let in more than once\n"
    assert alone == (0, told)
    ledger = await open_ledger(url)
    try:
        found = await ledger.tickets.duplicate_scans(EVENT)
        assert [[scan.gate for scan in one.scans] for one in found] == [["north", "south"]]
        assert (await GateService(ledger, KEYS, TicketRenderer(ledger, KEYS)).bundle(EVENT, NOW)).keys == (
            KEYS.public.hex(),
        )
    finally:
        await ledger.aclose()
