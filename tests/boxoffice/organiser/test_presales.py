"""Before the sale: "notify me" and registration for a presale (W12), over HTTP, with the mails they send. The draw can
be checked, each address counts once, and nothing is left of a person who is forgotten."""

import asyncio
import csv
import re
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.boxoffice.presale.model import (
    DrawOrder,
    Presale,
    Purpose,
    RegistrationClosed,
    Signup,
    SignupState,
    draw_order,
    lottery_rank,
    rank_of,
)
from frontrow.core.clock import US_PER_S
from frontrow.shared.local_time import time_text
from tests.boxoffice.organiser.http import EVENTS, OrganiserApi, an_organiser_api, at, draft, join, patched
from tests.boxoffice.people.support import fan, mails

HOUR_S = 3600
NOW_US = 1_800_000_000 * US_PER_S


def a_signup(number: int, **changes: Any) -> Signup:
    values: dict[str, Any] = {
        "id": f"reg_{number:04}",
        "event_id": "evt_1",
        "purpose": Purpose.PRESALE,
        "email": f"{number}@example.org",
        "locale": "en",
        "state": SignupState.CONFIRMED,
        "created_at_us": NOW_US,
        "confirmed_at_us": NOW_US + number,
    }
    return Signup(**(values | changes))


def a_presale(**changes: Any) -> Presale:
    values: dict[str, Any] = {
        "event_id": "evt_1",
        "opens_at_us": NOW_US,
        "closes_at_us": NOW_US + 100,
        "codes": 3,
        "order": DrawOrder.LOTTERY,
        "lane": "presale",
        "seed": "a secret seed",
    }
    return Presale(**(values | changes))


# the draw


def test_w12_the_draw_follows_from_seed_and_beacon_and_from_nothing_else():
    everybody = [a_signup(number) for number in range(50)]
    presale = a_presale(beacon="drand 42")
    order = draw_order(presale, everybody)
    assert order == draw_order(presale, everybody[::-1])
    assert [one.id for one in order] != [one.id for one in draw_order(a_presale(beacon="drand 43"), everybody)]
    assert rank_of(presale, order[0]) == lottery_rank("a secret seed", "drand 42", "evt_1", order[0].id)
    assert [one.id for one in draw_order(a_presale(order=DrawOrder.FIRST_COME), everybody[::-1])] == [
        one.id for one in everybody
    ]
    before = presale.record({})
    assert (before["seed"], before["commitment"]) == (None, presale.commitment)


def test_w12_everybody_has_the_same_chance():
    """Over many seeds each of ten registrations wins one of three codes about three times in ten."""
    everybody = [a_signup(number) for number in range(10)]
    won = dict.fromkeys((one.id for one in everybody), 0)
    for seed in range(2_000):
        for one in draw_order(a_presale(seed=f"seed {seed}"), everybody)[:3]:
            won[one.id] += 1
    assert all(500 < wins < 700 for wins in won.values()), won


# the ledger (SQLite and PostgreSQL)


async def test_an_address_counts_once_however_often_it_asks(ledger: SqlLedger):
    book = ledger.signups
    asks = [a_signup(n, email="ada@example.org", purpose=Purpose.NOTICE, state=SignupState.ASKED) for n in range(50)]
    found = await asyncio.gather(*(book.save_signup(one, None) for one in asks))
    assert len({signup_id for signup_id, _ in found}) == 1
    signup_id = found[0][0]
    assert await book.confirm(signup_id, NOW_US)
    assert not await book.confirm(signup_id, NOW_US)
    again, state = await book.save_signup(asks[7], None)
    assert (again, state) == (signup_id, SignupState.CONFIRMED)
    assert await book.drop(signup_id)
    assert await book.signup(signup_id) is None


async def test_of_many_servers_that_send_a_notice_each_address_gets_one(ledger: SqlLedger):
    """Exactly once per address: marking the notice and its mail are one transaction."""
    book = ledger.signups
    for number in range(25):
        await book.save_signup(a_signup(number, purpose=Purpose.NOTICE), None)
    await book.save_signup(a_signup(99, purpose=Purpose.NOTICE, state=SignupState.ASKED), None)

    def mail(signup: Signup) -> NewDelivery:
        return NewDelivery("signup", "email/0", f"sale_opens-{signup.id}", signup.email)

    for _ in range(4):
        await asyncio.gather(*(book.send_notices("evt_1", mail, 10, NOW_US) for _ in range(5)))
    claimed = await ledger.messages.claim_deliveries("signup", NOW_US, US_PER_S, 100, 100)
    assert sorted(one.body for one in claimed) == sorted(f"{number}@example.org" for number in range(25))
    assert await book.events_with_notices(0) == []


async def test_a_presale_takes_registrations_until_it_closes_and_its_order_is_fixed(ledger: SqlLedger):
    book = ledger.signups
    with pytest.raises(RegistrationClosed):
        await book.save_signup(a_signup(1), None)
    assert await book.put_presale(a_presale(), NOW_US)
    signup_id, _ = await book.save_signup(a_signup(1, state=SignupState.ASKED), None)
    assert await book.put_presale(a_presale(codes=7, seed="another"), NOW_US)
    kept = await book.presale("evt_1")
    assert kept is not None
    assert (kept.codes, kept.seed) == (7, "a secret seed")
    assert not await book.put_presale(a_presale(order=DrawOrder.FIRST_COME), NOW_US)
    assert not await book.begin_draw("evt_1", "", "[]", NOW_US + 99)
    assert not await book.confirm(signup_id, NOW_US + 100)
    with pytest.raises(RegistrationClosed):
        await book.save_signup(a_signup(2, created_at_us=NOW_US + 100), None)
    begun = await asyncio.gather(*(book.begin_draw("evt_1", f"b{n}", "[]", NOW_US + 100) for n in range(10)))
    assert sum(begun) == 1
    assert not await book.put_presale(a_presale(), NOW_US + 101)


# over HTTP


async def sent_to(api: OrganiserApi, address: str) -> list[str]:
    """Subject and text of every sign-up mail to this address, oldest first."""
    await api.platform.presale.signups.mail.worker().drain()
    found = [
        one["Subject"] + "\n" + one.get_body(("plain",)).get_content() for one in await mails(api.platform, address)
    ]
    return [text for text in found if "#frl_" not in text]


async def link_in(api: OrganiserApi, address: str, act: str) -> str:
    """The last part of the link in the newest mail to an address."""
    found = re.search(rf"/sign-ups/{act}/(\S+)", (await sent_to(api, address))[-1])
    assert found is not None
    return found[1]


@dataclass
class Opening:
    """An event whose sale opens in an hour; fans ask to be told."""

    api: OrganiserApi
    event: str

    @property
    def path(self) -> str:
        return f"/v1/events/{self.event}/notices"

    async def ask(self, headers: dict[str, str] | None = None, **body: str) -> httpx.Response:
        return await self.api.client.post(self.path, json=body, headers=headers)

    async def confirm(self, token: str) -> httpx.Response:
        return await self.api.client.post("/v1/sign-ups/confirm", json={"token": token})

    async def asked_and_confirmed(self, email: str, **more: str) -> None:
        await self.ask(email=email, **more)
        await self.confirm(await link_in(self.api, email, "confirm"))

    async def send_due(self) -> int:
        return await self.api.platform.presale.signups.send_due()


@pytest.fixture
async def opening(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        event = await draft(api, sale_starts_at=at(api.platform, HOUR_S))
        await api.post(f"{EVENTS}/{event}/publish")
        yield Opening(api, event)


async def test_who_wants_to_be_told_names_a_good_address_of_a_published_event(opening):
    hidden = await draft(opening.api, sale_starts_at=at(opening.api.platform, HOUR_S))
    asked = await opening.api.client.post(f"/v1/events/{hidden}/notices", json={"email": "ada@example.org"})
    assert asked.status_code == 404
    asked = await opening.ask(email="Ada@Example.org", locale="de")
    assert (asked.status_code, asked.json()["state"]) == (202, "asked")
    assert (await opening.ask(email="no address")).status_code == 422
    assert (await opening.ask()).status_code == 401


async def test_a_sign_up_is_confirmed_by_the_button_and_not_by_opening_the_link(opening):
    await opening.ask(email="ada@example.org")
    token = await link_in(opening.api, "ada@example.org", "confirm")
    page = await opening.api.client.get(f"/sign-ups/confirm/{token}")  # a mail scanner opens links
    assert page.status_code == 200
    presales = opening.api.platform.presale.presales
    assert await presales.notices(opening.event) == 0
    for _ in range(2):
        assert (await opening.confirm(token)).json()["state"] == "confirmed"
    assert await presales.notices(opening.event) == 1
    for wrong in (token[:-1] + ("A" if token[-1] != "A" else "B"), token.partition(".")[0], "x"):
        assert (await opening.confirm(wrong)).status_code == 404


async def test_a_signed_in_fan_needs_no_confirmation(opening):
    bob = await fan(opening.api.platform, "bob@example.org")
    assert (await opening.ask(headers=bob.bearer)).json()["state"] == "confirmed"


async def test_who_confirmed_is_told_once_when_the_sale_opens(opening):
    api = opening.api
    await opening.asked_and_confirmed("ada@example.org", locale="de")
    bob = await fan(api.platform, "bob@example.org")
    await opening.ask(headers=bob.bearer)
    await opening.ask(email="eve@example.org")  # never confirmed: never told
    assert await opening.send_due() == 0
    await patched(api, opening.event, sale_starts_at=at(api.platform, 2 * HOUR_S))  # postponed: still nothing
    assert await opening.send_due() == 0
    await patched(api, opening.event, sale_starts_at=at(api.platform, -1))
    assert await opening.send_due() == 2
    (_, text) = await sent_to(api, "ada@example.org")
    assert "hat begonnen" in text
    assert f"/v1/events/{opening.event}/room/" in text
    assert await opening.send_due() == 0
    assert len(await sent_to(api, "eve@example.org")) == 1
    assert len(await sent_to(api, "bob@example.org")) == 1


async def test_once_the_sale_is_open_nobody_signs_up_for_its_opening(opening):
    await patched(opening.api, opening.event, sale_starts_at=at(opening.api.platform, -1))
    refused = await opening.ask(email="late@example.org")
    assert (refused.status_code, refused.json()["reason"]) == (409, "open")


async def test_the_link_in_the_notice_ends_the_sign_up_also_twice(opening):
    api = opening.api
    await opening.asked_and_confirmed("ada@example.org")
    await patched(api, opening.event, sale_starts_at=at(api.platform, -1))
    await opening.send_due()
    end = await link_in(api, "ada@example.org", "end")
    assert (await api.client.get(f"/sign-ups/end/{end}")).status_code == 200
    assert (await api.client.post("/v1/sign-ups/end", json={"token": end})).status_code == 204
    assert (await api.client.get(f"/sign-ups/end/{end}")).status_code == 200  # again: kindly


async def test_nobody_is_told_of_a_cancelled_event_and_a_forgotten_person_leaves_nothing(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        event = await draft(api, sale_starts_at=at(api.platform, HOUR_S))
        await api.post(f"{EVENTS}/{event}/publish")
        ada, bob = await fan(api.platform, "ada@example.org"), await fan(api.platform, "bob@example.org")
        for person in (ada, bob):
            await api.client.post(f"/v1/events/{event}/notices", json={}, headers=person.bearer)
        kept = (await api.client.get("/v1/me/export", headers=ada.bearer)).json()["sign_ups"]
        assert [(one["event_id"], one["purpose"]) for one in kept] == [(event, "notice")]
        await api.platform.people.fans.erase(ada.id)
        assert await api.platform.presale.signups.of_address("ada@example.org") == []
        await api.post(f"{EVENTS}/{event}/cancel", 202)
        await api.platform.presale.signups.send_due()
        assert await api.platform.presale.signups.send_due() == 0
        assert await sent_to(api, "bob@example.org") == []


async def test_asking_again_and_again_is_limited(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        event = await draft(api, sale_starts_at=at(api.platform, HOUR_S))
        await api.post(f"{EVENTS}/{event}/publish")
        codes = [
            (await api.client.post(f"/v1/events/{event}/notices", json={"email": "ada@example.org"})).status_code
            for _ in range(12)
        ]
        assert 429 in codes


async def test_w12_fans_register_are_drawn_get_a_code_by_mail_and_join_with_it(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        starts, sale = api.platform.clock() + HOUR_S * US_PER_S, at(api.platform, 2 * HOUR_S)
        event = await draft(api, sale_starts_at=sale)
        path, own = f"/v1/events/{event}/presale", f"{EVENTS}/{event}/presale"
        await patched(api, event, presale_starts_at=time_text(starts), room={"human": "none"})
        await api.post(f"{EVENTS}/{event}/publish")
        assert (await api.client.get(path)).status_code == 404
        asked = {"opens_at": at(api.platform, -60), "closes_at": at(api.platform, 1800), "codes": 2}
        late = await api.ask("PUT", own, json=asked | {"closes_at": sale})
        assert (late.status_code, late.json()["param"]) == (422, "closes_at")
        assert (await api.ask("PUT", own, json=asked)).status_code == 200
        commitment = (await api.client.get(path)).json()["commitment"]
        registrations = {}
        for name in ("ada", "bob", "eve"):
            person = await fan(api.platform, f"{name}@example.org")
            done = await api.client.post(f"{path}/registrations", json={}, headers=person.bearer)
            registrations[name] = done.json()["registration"]
        again = await api.client.post(f"{path}/registrations", json={}, headers=person.bearer)
        assert again.json()["registration"] == registrations["eve"]  # one per address
        await api.client.post(f"{path}/registrations", json={"email": "mail@example.org", "locale": "ja"})
        token = await link_in(api, "mail@example.org", "confirm")
        done = await api.client.post("/v1/sign-ups/confirm", json={"token": token})
        registrations["mail"] = done.json()["registration"]
        early = await api.ask("POST", f"{own}/draw", json={})
        assert (early.status_code, early.json()["code"]) == (409, "draw_refused")
        await api.ask("PUT", own, json=asked | {"closes_at": at(api.platform, -1)})
        over = await api.client.post(f"{path}/registrations", json={"email": "late@example.org"})
        assert (over.status_code, over.json()["code"]) == (409, "registration_closed")
        answers = await asyncio.gather(*(api.ask("POST", f"{own}/draw", json={"beacon": "drand 7"}) for _ in range(5)))
        assert {answer.status_code for answer in answers} == {202}
        await api.platform.presale.presales.work()
        record = (await api.client.get(path)).json()
        assert (record["state"], record["commitment"], record["chosen"], record["registrations"]) == (
            "drawn",
            commitment,
            2,
            4,
        )
        ranks = {
            name: lottery_rank(record["seed"], record["beacon"], event, registration)
            for name, registration in registrations.items()
        }
        chosen = {name for name, rank in ranks.items() if rank <= record["last_rank"]}
        assert len(chosen) == 2, "everybody can check who was chosen"
        told = {name: (await sent_to(api, f"{name}@example.org"))[-1] for name in ranks}
        codes = {name: found[0] for name, text in told.items() if (found := re.findall(r"VF-\w{7}-\w{13}", text))}
        assert set(codes) == chosen
        table = (await api.ask("GET", f"{own}/registrations.csv")).content.decode("utf-8-sig")
        rows = list(csv.DictReader(table.splitlines()))
        assert {row["email"].partition("@")[0]: row["code"] for row in rows if row["code"]} == codes
        await patched(api, event, presale_starts_at=at(api.platform, -1))
        first, second = codes.values()
        assert (await join(api, event, code=first)).json()["lane"] == "presale"
        assert (await join(api, event, code=first)).json()["code"] == "code_used"
        assert (await join(api, event)).json()["code"] == "code_needed"
        assert (await join(api, event, code=second)).status_code == 201
        acts = [
            one.act for one in await api.platform.ledger.organiser.changes(api.person.staff.organiser_id, event, 0, 50)
        ]
        assert {"open_presale", "draw_presale", "make_codes", "export"} <= set(acts)


async def test_w12_a_draw_that_died_in_the_middle_goes_on_and_nobody_gets_two_codes(tmp_path, monkeypatch):
    from frontrow.boxoffice.presale import presales

    monkeypatch.setattr(presales, "CHUNK", 2)
    async with an_organiser_api(tmp_path) as api:
        event = await draft(api, sale_starts_at=at(api.platform, 2 * HOUR_S))
        await patched(api, event, presale_starts_at=at(api.platform, HOUR_S))
        await api.post(f"{EVENTS}/{event}/publish")
        asked = {"opens_at": at(api.platform, -60), "closes_at": at(api.platform, 60), "codes": 4}
        await api.ask("PUT", f"{EVENTS}/{event}/presale", json=asked)
        for number in range(7):
            person = await fan(api.platform, f"f{number}@example.org")
            await api.client.post(f"/v1/events/{event}/presale/registrations", json={}, headers=person.bearer)
        await api.ask("PUT", f"{EVENTS}/{event}/presale", json=asked | {"closes_at": at(api.platform, -1)})
        book = api.platform.presale.presales._book
        settle, calls = book.write_draw_results, 0

        async def dies(*given: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise RuntimeError("the server died")
            await settle(*given)

        monkeypatch.setattr(book, "write_draw_results", dies)
        await api.ask("POST", f"{EVENTS}/{event}/presale/draw", json={})
        with pytest.raises(RuntimeError):
            await api.platform.presale.presales.work()
        assert (await api.platform.presale.presales.counts(event))["confirmed"] == 5
        await asyncio.gather(*(api.platform.presale.presales.work() for _ in range(3)))
        counts = await api.platform.presale.presales.counts(event)
        assert counts == {"chosen": 4, "passed_over": 3}
        rows = await api.platform.presale.presales.export(await api.platform.ledger.catalogue.event(event))
        codes = [row["code"] for row in rows if row["code"]]
        assert len(set(codes)) == 4
        for number in range(7):
            assert len(await sent_to(api, f"f{number}@example.org")) == 1
