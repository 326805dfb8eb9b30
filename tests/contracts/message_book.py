"""The contract of the MessageBook port as plain checks over a Bench (two ledgers on one store)."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from frontrow.boxoffice.messages.delivery_retries import apply_outcome
from frontrow.boxoffice.messages.model.channel_reports import BlockedAddress, ReportKind
from frontrow.boxoffice.messages.model.messages import (
    Buyer,
    CodeAnswer,
    Contact,
    Delivery,
    Endpoint,
    InAppMessage,
    NewDelivery,
    Outcome,
)
from frontrow.boxoffice.organiser.model.booking_search import BookingSearch
from frontrow.boxoffice.people.model.people import Fan
from frontrow.boxoffice.people.model.person_names import search_words
from frontrow.core.errors import InvalidInput
from tests.contracts.ledger_contract import CALLERS, Bench, refusal

Check = Callable[[Bench], Coroutine[Any, Any, None]]


async def put(bench: Bench, kind: str, *deliveries: tuple[str, str]) -> None:
    """Put (queue, dedupe) in line."""
    new = [NewDelivery(kind, queue, dedupe, '{"ü": "\\\\"}') for queue, dedupe in deliveries]
    source = f"{bench.event} {kind}"
    for query in bench.one.messages.make_delivery_writes(new, bench.now_us):
        await bench.one.messages.once(source, deliveries[0][1], [query], bench.now_us)


async def claim(bench: Bench, kind: str, *, per_queue: int = 10, limit: int = 100, at: int = 0) -> list[Delivery]:
    return await bench.two.messages.claim_deliveries(kind, bench.now_us + at, 1_000, limit, per_queue)


async def of_many_callers_with_one_message_exactly_one_acts(bench: Bench) -> None:
    kind = f"k {bench.event}"
    queries = [
        bench.one.messages.make_delivery_writes([NewDelivery(kind, "l", f"{kind}:{n}", "")], bench.now_us)
        for n in range(CALLERS)
    ]
    calls = (bench.either(n).messages.once(kind, "same", queries[n], bench.now_us) for n in range(CALLERS))
    assert sum(await asyncio.gather(*calls)) == 1
    assert await bench.one.messages.delivery_counts(kind) == {"waiting": 1}
    assert await bench.two.messages.once(kind, "another", (), bench.now_us)


async def many_messages_are_heard_once_each_in_one_step(bench: Bench) -> None:
    """A batch with one known message, one that stands in it twice, and new ones; then everybody hears it again."""
    kind = f"k {bench.event}"
    batch = [
        (name, bench.one.messages.make_delivery_writes([NewDelivery(kind, "l", f"{kind}:{n}", "")], bench.now_us))
        for n, name in enumerate(["a", "b", "b", "c"])
    ]
    assert await bench.one.messages.once(kind, "a", (), bench.now_us)
    assert await bench.two.messages.once_each(kind, batch, bench.now_us) == [False, True, False, True]
    assert [one.dedupe for one in await claim(bench, kind)] == [f"{kind}:1", f"{kind}:3"]
    heard = await asyncio.gather(
        *(bench.either(n).messages.once_each(kind, batch, bench.now_us) for n in range(CALLERS))
    )
    assert not any(any(one) for one in heard)
    fresh = [(f"n{n}", batch[n % 4][1]) for n in range(20)]
    heard = await asyncio.gather(
        *(bench.either(n).messages.once_each(kind, fresh, bench.now_us) for n in range(CALLERS))
    )
    assert [sum(one) for one in zip(*heard, strict=True)] == [1] * 20, "each message has one winner"
    assert await bench.one.messages.once_each(kind, [], bench.now_us) == []


async def a_lane_is_claimed_to_one_worker_and_no_lane_waits_for_another(bench: Bench) -> None:
    kind = f"k {bench.event}"
    await put(bench, kind, *((f"queue {n % 2}", f"{kind}:{n}") for n in range(8)), ("queue 2", f"{kind}:x"))
    first = await claim(bench, kind, per_queue=3)
    assert [one.queue for one in first] == ["queue 0", "queue 1", "queue 0", "queue 1", "queue 0", "queue 1", "queue 2"]
    assert first[0].body == '{"ü": "\\\\"}'
    assert await claim(bench, kind, per_queue=3) == [], "every queue is being worked on"
    of_lane_1 = [one for one in first if one.queue == "queue 1"]
    await bench.one.messages.save_delivery_results(
        [apply_outcome(one, Outcome(True), bench.now_us, 60) for one in of_lane_1], bench.now_us
    )
    assert [one.queue for one in await claim(bench, kind)] == ["queue 1"], "the rest of a queue that is free again"
    renewed = [one.number for one in first if one.queue == "queue 2"]
    await bench.one.messages.renew_deliveries(renewed, bench.now_us + 999, 1_000)
    await bench.one.messages.renew_deliveries([], bench.now_us + 999, 1_000)
    assert len(await claim(bench, kind, at=1_000)) == 5, "when a claim ends, somebody else may try"
    await bench.one.messages.renew_deliveries(renewed, bench.now_us + 1_999, 1_000)
    assert [one.queue for one in await claim(bench, kind, at=1_999)] == ["queue 2"], "a claim that ended is not renewed"


async def a_delivery_comes_back_at_its_time_and_is_sent_once(bench: Bench) -> None:
    kind = f"k {bench.event}"
    await put(bench, kind, ("l", f"{kind}:1"))
    await put(bench, kind, ("l", f"{kind}:1"))
    (one,) = await claim(bench, kind)
    again = apply_outcome(one, Outcome(False, final=False, reason="busy"), bench.now_us, 60)
    await bench.one.messages.save_delivery_results([again], bench.now_us)
    wait_us = again.next_at_us - bench.now_us
    assert await claim(bench, kind, at=wait_us - 1) == []
    (two,) = await claim(bench, kind, at=wait_us)
    assert (two.number, two.attempts) == (one.number, 1)
    await bench.one.messages.save_delivery_results([apply_outcome(two, Outcome(True), bench.now_us, 60)], bench.now_us)
    await bench.one.messages.save_delivery_results([again], bench.now_us)
    assert await bench.two.messages.delivery_counts(kind) == {"sent": 1}
    assert await claim(bench, kind, at=10**12) == []
    assert (await refusal(claim(bench, kind, limit=0), InvalidInput)).param == "limit"


async def what_a_buyer_says_is_kept_and_a_proven_address_stays(bench: Bench) -> None:
    guest, fan = f"place:{bench.event}:0.1.1.5", Fan(f"fan_{bench.event}", f"{bench.event}@example.org", bench.now_us)
    await bench.one.people.fan_of_address(fan)
    device = f'{{"endpoint":"https://push.example/b{bench.event}"}}'
    await bench.one.messages.put_contact(Contact(fan.id, fan.email, "+49", "de", ("sms",), (device,)), bench.now_us)

    async def says(buyer: str, email: str, name: str) -> tuple[str, str]:
        await bench.one.messages.keep_buyer(Contact(buyer, email, locale="fr", name=name), bench.event, bench.now_us)
        kept = await bench.two.messages.contact(buyer)
        return (kept.email, kept.name) if kept is not None else ("", "")

    assert await says(guest, "Typo@EXAMPLE.org", "") == ("typo@example.org", "")
    assert await says(guest, "", "Ada Lovelace") == ("typo@example.org", "Ada Lovelace")
    assert await says(guest, "ada@example.org", "") == ("ada@example.org", "Ada Lovelace")
    assert await says(fan.id, "thief@example.org", "Bob") == (fan.email, "Bob")
    kept = await bench.two.messages.contact(fan.id)
    assert kept == Contact(fan.id, fan.email, "+49", "de", ("sms",), (device,), "Bob")
    newcomer = Fan(f"fan_n{bench.event}", f"n{bench.event}@example.org", bench.now_us)
    await bench.one.people.fan_of_address(newcomer)
    assert await says(newcomer.id, "thief@example.org", "") == (newcomer.email, "")


async def a_buyer_is_found_by_any_part_of_the_name_in_the_event_only(bench: Bench) -> None:
    people = {
        "ada": "Ada King, Countess of Lovelace",
        "bjork": "Björk Guðmundsdóttir",
        "taro": "山田 太郎",
        "ass": "Straßer Anna",
        "two": "Anna Annabel Müller",
    }
    bookings = {}
    for seat, (who, name) in enumerate(people.items(), 1):
        fan = f"place:{bench.event}:0.1.{seat}.5"
        hold = await bench.paid(seat, fan=fan, amount_minor=500, currency="EUR")
        await bench.one.messages.keep_buyer(Contact(fan, f"{who}@example.org", name=name), bench.event, bench.now_us)
        await bench.one.confirm(hold.booking_id, hold.fence, bench.now_us)
        bookings[hold.booking_id] = who

    async def found(text: str, event: str = "", before: int = 0, limit: int = 10) -> list[str]:
        page = await bench.two.organiser.bookings_by_name(event or bench.event, search_words(text), before, limit)
        return [bookings[one.id] for one in page]

    assert await found("vela") == await found("LOVELACE") == await found("king ada") == ["ada"]
    assert await found("bjork") == await found("gudmunds") == await found("Björk") == ["bjork"]
    assert await found("田") == await found("山田") == ["taro"]
    assert await found("strass") == ["ass"]
    assert await found("anna") == ["two", "ass"], "newest first, each once"
    assert await found("anna muller") == await found("Müll abel") == ["two"]
    assert await found("ann", limit=1) == ["two"]
    newest = (await bench.two.organiser.bookings_by_name(bench.event, ["anna"], 0, 1))[0]
    assert await found("anna", before=newest.fence) == ["ass"]
    for nothing in ("a", "", "%", "_", "'", "lovelace anna", "velacex"):
        assert await found(nothing) == [], nothing
    assert await found("anna", event="evt_another") == []
    ada = f"place:{bench.event}:0.1.1.5"
    buyers = await bench.two.organiser.buyers_of([ada, "fan_nobody"])
    assert buyers == {ada: Buyer("ada@example.org", people["ada"])}
    await bench.one.messages.put_contact(Contact(ada, "ada@example.org", name="Augusta Byron"), bench.now_us)
    assert (await found("lovelace"), await found("byron")) == ([], ["ada"]), "a changed name is found, the old is not"


async def a_booking_is_found_by_a_part_of_its_number_or_of_its_buyers_address(bench: Bench) -> None:
    people = ("ada.king@example.org", "eve_x%@shop.example", "king@example.com")
    bookings = {}
    for seat, email in enumerate(people, 1):
        fan = f"place:{bench.event}:0.2.{seat}.5"
        hold = await bench.paid(seat, fan=fan, amount_minor=500, currency="EUR")
        await bench.one.messages.keep_buyer(Contact(fan, email), bench.event, bench.now_us)
        await bench.one.confirm(hold.booking_id, hold.fence, bench.now_us)
        bookings[hold.booking_id] = email
    late = await bench.one.booking(hold.booking_id)
    assert late is not None

    async def found(before: int = 0, limit: int = 10, event: str = "", **parts: str) -> list[str]:
        search = BookingSearch(**parts)
        page = await bench.two.organiser.bookings_by_part(event or bench.event, search, before, limit)
        return [bookings[one.id] for one in page]

    ada, eve, king = people
    assert await found(email_part="king") == [king, ada], "newest first"
    assert await found(email_part="king", limit=1) == [king]
    assert await found(email_part="king", before=late.fence) == [ada]
    assert await found(email_part="g@exa") == [king, ada]
    assert await found(email_part="e_x%@") == await found(email_part="%") == [eve], "wildcards are plain letters"
    assert (
        await found(email_part="nobody") == await found(email_part="king", event="evt_another") == await found() == []
    )
    for number, email in bookings.items():
        assert email in await found(number_part=number[-8:]), "as the organiser's pages show it"


async def what_people_and_organisers_want_is_kept(bench: Bench) -> None:
    fan = f"fan {bench.event}"
    device = f'{{"endpoint":"https://push.example/{bench.event}"}}'
    assert await bench.one.messages.contact(fan) is None
    for contact in (
        Contact(fan, "a@example.org", "+49", "de", ("email", "push"), (device,), "Ada Lovelace"),
        Contact(fan, "b@example.org"),
    ):
        await bench.one.messages.put_contact(contact, bench.now_us)
        assert await bench.two.messages.contact(fan) == contact
    assert (
        await refusal(bench.one.messages.put_contact(Contact(fan, push=("x",)), bench.now_us), InvalidInput)
    ).param == "push"
    endpoint = Endpoint(f"whk_{bench.event}", "org", bench.event, "https://x.example/", "secret", ("BookingConfirmed",))
    await bench.one.messages.put_endpoint(endpoint, bench.now_us)
    assert (
        await bench.two.messages.endpoints_of(bench.event)
        == [endpoint]
        == [await bench.two.messages.endpoint(endpoint.id)]
    )
    assert "secret" not in repr(endpoint)
    gone = Endpoint(endpoint.id, "org", bench.event, "https://x.example/", "secret", (), active=False)
    await bench.one.messages.put_endpoint(gone, bench.now_us)
    assert (await bench.two.messages.endpoints_of(bench.event), await bench.two.messages.endpoint(endpoint.id)) == (
        [],
        gone,
    )


async def the_page_has_each_message_once_newest_first(bench: Bench) -> None:
    fan = f"fan {bench.event}"
    messages = [InAppMessage(f"{bench.event}:{n}", fan, f"s{n}", "b", bench.now_us + n) for n in range(3)]
    for _ in range(2):
        await bench.one.messages.put_in_app(messages, bench.now_us)
    assert await bench.two.messages.in_app(fan) == messages[::-1]
    assert await bench.two.messages.in_app(fan, limit=1) == messages[:1:-1]
    await bench.one.messages.put_in_app([], bench.now_us)


async def an_address_is_blocked_until_it_is_opened(bench: Bench) -> None:
    book, email = bench.one.messages, f"{bench.event}@example.org"
    (block,) = book.make_block_writes("email", email.upper(), ReportKind.BOUNCED, "x" * 500, bench.now_us)
    for number in range(2):  # a second report changes nothing but the detail
        assert await book.once(f"reports {bench.event}", str(number), [block], bench.now_us)
    found = await bench.two.messages.blocked([("email", email), ("sms", email), ("email", "other@example.org")])
    assert list(found) == [("email", email)]
    assert found["email", email] == BlockedAddress("email", ReportKind.BOUNCED, "x" * 200, bench.now_us)
    (start,) = book.make_unblock_writes("email", email, ReportKind.STOPPED)
    assert await book.once(f"reports {bench.event}", "start", [start], bench.now_us)
    assert await bench.two.messages.blocked([("email", email)]), "START takes back STOP and nothing else"
    assert await bench.two.messages.unblock("email", email, bench.now_us)
    assert not await bench.two.messages.blocked([("email", email)])
    assert await book.blocked([]) == {}


async def a_code_proves_a_number_once_and_nobody_guesses_it(bench: Bench) -> None:
    fan, book = f"fan {bench.event}", bench.one.messages

    def typed(code: str) -> Callable[[str], str]:
        return lambda phone: f"{phone} {code}"

    async def tried(code: str, at_us: int = 0) -> CodeAnswer:
        return await bench.two.messages.check_phone_code(fan, typed(code), bench.now_us + at_us)

    assert await tried("1") is CodeAnswer.OVER, "none was sent"
    await book.put_phone_code(fan, "+431", "+431 1", bench.now_us + 10, bench.now_us)
    assert await tried("1", 10) is CodeAnswer.OVER, "it ends exactly then"
    await book.put_phone_code(fan, "+432", "+432 2", bench.now_us + 10, bench.now_us)
    calls = (bench.either(n).messages.check_phone_code(fan, typed("9"), bench.now_us) for n in range(CALLERS))
    answers = await asyncio.gather(*calls)
    assert answers.count(CodeAnswer.WRONG) == 5, "of many guesses at once five are looked at"
    assert await tried("2") is CodeAnswer.OVER
    await book.put_phone_code(fan, "+433", "+433 3", bench.now_us + 10, bench.now_us)
    calls = (bench.either(n).messages.check_phone_code(fan, typed("3"), bench.now_us + 9) for n in range(4))
    assert sorted(await asyncio.gather(*calls)) == ["over"] * 3 + ["right"]
    contact = await bench.two.messages.contact(fan)
    assert contact is not None
    assert (contact.phone, contact.takes_sms) == ("+433", True)
    await book.put_contact(msgspec.structs.replace(contact, phone="+434"), bench.now_us)
    assert not (await bench.two.messages.contact(fan)).takes_sms, "another number is not proven"  # type: ignore[union-attr]
    await book.put_contact(contact, bench.now_us)
    assert (await bench.two.messages.contact(fan)).takes_sms  # type: ignore[union-attr]


async def a_device_that_is_gone_is_forgotten_alone(bench: Bench) -> None:
    fan, book = f"fan {bench.event}", bench.one.messages
    devices = tuple(f'{{"endpoint":"fcm:{bench.event}{n}"}}' for n in range(2))
    await book.put_contact(Contact(fan, push=devices), bench.now_us)
    await book.drop_device("somebody else", f"fcm:{bench.event}1", bench.now_us)
    await book.drop_device(fan, f"fcm:{bench.event}0", bench.now_us)
    assert (await bench.two.messages.contact(fan)).push == devices[1:]  # type: ignore[union-attr]


CHECKS: list[Check] = [
    of_many_callers_with_one_message_exactly_one_acts,
    a_lane_is_claimed_to_one_worker_and_no_lane_waits_for_another,
    a_delivery_comes_back_at_its_time_and_is_sent_once,
    what_people_and_organisers_want_is_kept,
    what_a_buyer_says_is_kept_and_a_proven_address_stays,
    a_buyer_is_found_by_any_part_of_the_name_in_the_event_only,
    a_booking_is_found_by_a_part_of_its_number_or_of_its_buyers_address,
    the_page_has_each_message_once_newest_first,
    many_messages_are_heard_once_each_in_one_step,
    an_address_is_blocked_until_it_is_opened,
    a_code_proves_a_number_once_and_nobody_guesses_it,
    a_device_that_is_gone_is_forgotten_alone,
]
