"""Messages to buyers (B13, B15): who gets one, exactly once, whoever dies; what may be in it; how often."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound, booking_number
from frontrow.boxoffice.messages import buyer_messages
from frontrow.boxoffice.messages.buyer_message_mail import BuyerMessageMail
from frontrow.boxoffice.messages.buyer_messages import BuyerMessages
from frontrow.boxoffice.messages.mail_links import MailLinks
from frontrow.boxoffice.messages.model.buyer_messages import (
    MAX_PER_BOOKING_AND_DAY,
    MAX_PER_DAY,
    Audience,
    AudienceKind,
    BuyerMessageNotFound,
    BuyerMessageState,
    MailCounts,
    NoRecipients,
    TooManyMessages,
    check_message,
    fill_variables,
)
from frontrow.boxoffice.messages.model.messages import Contact, Outcome
from frontrow.boxoffice.people.model.people import Fan
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.tickets.model.ticket_transfers import HandOver, Transfer, TransferState
from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput
from frontrow.shared.ids import Ids
from frontrow.testing.clock import ManualClock
from frontrow.web.site.markdown import as_html
from tests.boxoffice.organiser.http import an_organiser_api
from tests.boxoffice.organiser.site import Site
from tests.boxoffice.organiser.support import ADA, NOW_US, a_purchase, an_office, on_sale
from tests.support.booking_moves import refund_booking
from tests.support.eventually import eventually

DAY_US = 86_400 * US_PER_S
ALL = Audience()


def a_clock():
    return ManualClock(NOW_US + US_PER_S)  # after the purchases


class Post:
    """A mail channel that keeps what it was given; `refuses` addresses for ever, and dies at the mail `dies_at`."""

    def __init__(self, name="email", refuses=(), dies_at=None):
        self.name, self.refuses, self.dies_at, self.mails = name, refuses, dies_at, []
        self.dying, self.stuck = asyncio.Event(), 0

    async def send(self, messages, note=None):
        if self.dies_at is not None and len(self.mails) >= self.dies_at:
            self.stuck += 1
            self.dying.set()
            await asyncio.Event().wait()
        kept = [one for one in messages if one.contact.email not in self.refuses]
        self.mails += kept
        return [Outcome(one in kept, reason="" if one in kept else "550 no such mailbox") for one in messages]

    def addresses(self):
        return sorted(one.contact.email for one in self.mails)


def writing(ledger, office, clock, post, page=None):
    async def seller_of(organiser_id):
        return Seller(organiser_id, "Small Hall Ltd", contact_email="hall@example.org")

    mail = BuyerMessageMail(
        ledger,
        (post, page or Post("in_app")),
        MailLinks(bytes(32), "https://x.example"),
        clock,
        message_of=ledger.buyer_messages.message,
        seller_of=seller_of,
        as_html=as_html,
        key=bytes(32),
    )
    return BuyerMessages(
        ledger.buyer_messages,
        mail,
        clock,
        Ids(clock),
        event_of=ledger.catalogue.event,
        booking_of=ledger.booking,
        plan_of=office.venues.plan,
    )


async def bought(ledger, event, seats, number, email="", name="", locale="en", at_us=NOW_US):
    booking = await a_purchase(ledger, event, seats, number=number, at_us=at_us)
    if email or name:
        await ledger.messages.put_contact(Contact(booking.fan, email, locale=locale, name=name), NOW_US)
    return booking


async def hand_over(ledger, booking, seat, email, locale="de", name="Grace"):
    """Transfer a ticket to somebody, who accepts it."""
    ticket = next(one for one in await ledger.tickets.tickets_of(booking.id) if one.seat_index == seat)
    number = f"trf_{booking.id[-4:]}{seat}"
    about = (number, booking.id, booking.event_id, seat, ticket.id, booking.fan, email, locale, TransferState.SENT)
    await ledger.transfers.send(Transfer(*about, NOW_US, NOW_US + DAY_US))
    new = NewTicket(f"tkt_new{seat}", seat, f"code{number}")
    return await ledger.transfers.accept(HandOver(number, new, name, locale, NOW_US))


async def sent_out(messages, clock):
    """Work as the jobs do, until the message is done."""
    for _ in range(20):
        clock.now_us += US_PER_S
        await messages.work()
        await messages._mail.worker().drain()


async def test_b13_everyone_who_has_a_ticket_gets_it_once_and_nobody_else(ledger):
    clock, post, page = a_clock(), Post(refuses=("gone@example.org",)), Post("in_app")
    office = an_office(ledger, clock)
    event = await on_sale(office)
    await bought(ledger, event, (0,), 1, "ada@example.org", "Ada <b>", "fr")
    await bought(ledger, event, (1,), 2, "ada@example.org", "Ada again")  # a second booking of the same person
    given = await bought(ledger, event, (2, 3), 3, "bob@example.org")
    await hand_over(ledger, given, 2, "grace@example.org")
    wholly = await bought(ledger, event, (4,), 4, "carl@example.org")
    await hand_over(ledger, wholly, 4, "grace@example.org")  # Carl has no ticket any more, Grace has two
    back = await bought(ledger, event, (5,), 5, "dora@example.org")
    await refund_booking(ledger, back.id, back.fence, NOW_US)
    await bought(ledger, event, (6,), 6)  # at the box office, without an address
    forgotten = await bought(ledger, event, (7,), 7)
    await ledger.people.add_fan(Fan(forgotten.fan, "erika@example.org", NOW_US))
    await ledger.messages.put_contact(Contact(forgotten.fan, "erika@example.org"), NOW_US)
    await ledger.people.erase_fan(forgotten.fan, NOW_US)
    await bought(ledger, event, (8,), 8, "gone@example.org")
    messages = writing(ledger, office, clock, post, page)
    subject, text = "Doors of {event} for {name}", "Dear {name}, use **gate B**. <script>x</script> {booking} {date}"
    draft = await messages.write(ADA, event, ALL, subject, text)
    preview = await messages.preview(event, draft)
    assert (preview.count.addresses, preview.count.without_address) == (4, 2)
    assert preview.example.subject == "Doors of Aurora for Ada <b>"
    assert "open#" not in preview.example.text + preview.example.html  # no link that opens somebody's tickets
    sending = await messages.send(ADA, event, draft)
    assert await messages.send(ADA, event, draft) == sending  # a second click
    await bought(ledger, event, (9,), 9, "late@example.org", at_us=clock.now_us)
    await sent_out(messages, clock)
    assert post.addresses() == ["ada@example.org", "bob@example.org", "grace@example.org"]
    assert sorted(one.contact.fan for one in page.mails) == ["fan_1", "fan_2", "fan_3", "fan_8"]
    done = await messages.of_event(event, draft.id)
    assert done.state is BuyerMessageState.SENT
    assert await messages.progress(done) == MailCounts(4, sent=3, failed=1)
    by_address = {one.contact.email: one for one in post.mails}
    ada, grace = by_address["ada@example.org"], by_address["grace@example.org"]
    assert ada.reply_to == "hall@example.org"
    assert "Voir mes billets" in ada.text  # the frame is in the reader's language
    assert "Dear Ada &lt;b&gt;, use <strong>gate B</strong>. &lt;script&gt;" in ada.html
    assert "https://x.example/open#frm_booking." in ada.text
    assert "Meine Tickets ansehen" in grace.text
    assert "https://x.example/open#frm_transfer." in grace.text
    noted = [one for one in await ledger.organiser.changes("org_hall", event.id, 0, 10) if one.act == "write_to_buyers"]
    assert len(noted) == 1
    assert '"recipients":4' in noted[0].detail


async def test_b15_workers_that_die_send_nobody_twice_and_forget_nobody(ledger, monkeypatch):
    monkeypatch.setattr(buyer_messages, "BATCH", 3)
    monkeypatch.setattr(buyer_messages, "AHEAD", 14)
    clock = a_clock()
    office = an_office(ledger, clock)
    event = await on_sale(office)
    for number in range(16):
        await bought(ledger, event, (number,), number, f"fan{number % 12}@example.org")
    post = Post(dies_at=5)
    dying = writing(ledger, office, clock, post)
    draft = await dying.write(ADA, event, ALL, "Subject", "Text")
    await dying.send(ADA, event, draft)
    await dying.work()
    queued = await dying.progress(await dying.of_event(event, draft.id))
    assert 5 < (await ledger.buyer_messages.mails([f"{draft.id}/{queue}" for queue in range(8)])).total < 12
    assert queued.total == 12  # as counted when it was sent
    worker = dying._mail.worker()
    stuck = asyncio.create_task(worker.drain())
    await asyncio.wait_for(post.dying.wait(), 30)
    await eventually(lambda: len(worker._queues) == post.stuck)  # the queues that sent something record it
    stuck.cancel()  # killed: what it has in hand was not sent
    queues = list(worker._queues.values())
    for queue in queues:
        queue.cancel()
    await asyncio.gather(stuck, *queues, return_exceptions=True)
    clock.now_us += 300 * US_PER_S  # its claims end
    living = Post()
    others = [writing(ledger, office, clock, living) for _ in range(3)]
    for _ in range(12):
        clock.now_us += US_PER_S
        await asyncio.gather(*(one.work() for one in others))
        await asyncio.gather(*(one._mail.worker().drain() for one in others))
    assert sorted(post.addresses() + living.addresses()) == sorted(f"fan{number}@example.org" for number in range(12))
    done = await others[0].of_event(event, draft.id)
    assert (done.state, done.sent, done.recipients) == (BuyerMessageState.SENT, 12, 12)


async def test_b13_mails_of_a_message_take_turns_so_that_a_sales_mail_waits_for_one(sqlite_ledger, monkeypatch):
    """Writing a mail takes milliseconds of CPU. The queues of a message are sent at once, but not written at once."""
    ledger, clock, post = sqlite_ledger, a_clock(), Post()
    office = an_office(ledger, clock)
    event = await on_sale(office)
    for number in range(12):
        await bought(ledger, event, (number,), number, f"fan{number}@example.org")
    messages = writing(ledger, office, clock, post)
    await messages.send(ADA, event, await messages.write(ADA, event, ALL, "Subject", "Text"))
    await messages.work()
    mail = messages._mail
    busy = {"queues": 0, "writing": 0, "most_queues": 0, "most_writing": 0}

    def counted(what, act):
        async def run(*given):
            busy[what] += 1
            busy[f"most_{what}"] = max(busy[f"most_{what}"], busy[what])
            try:
                return await act(*given)
            finally:
                busy[what] -= 1

        return run

    monkeypatch.setattr(mail, "_try_write", counted("writing", mail._try_write))
    monkeypatch.setattr(mail, "send", counted("queues", mail.send))
    await mail.worker().drain()
    assert len(post.addresses()) == 12
    assert busy["most_queues"] > 1
    assert busy["most_writing"] == 1


async def test_b13_a_section_a_tier_or_one_booking(ledger):
    clock, post = a_clock(), Post()
    office = an_office(ledger, clock)
    event = await on_sale(office)
    plan = await office.venues.plan(event.plan_hash)
    people = {}
    for number, (section, of_section) in enumerate(zip(plan.sections, plan.bases, strict=True)):
        booking = await bought(ledger, event, (of_section,), number, f"{section.id}@example.org".lower())
        people[section.id] = booking
    messages = writing(ledger, office, clock, post)

    async def readers(kind, key):
        post.mails.clear()
        draft = await messages.write(ADA, event, Audience(kind, key), "Subject", "Text")
        await messages.send(ADA, event, draft)
        await sent_out(messages, clock)
        return post.addresses()

    first = plan.sections[0].id
    assert await readers(AudienceKind.SECTION, first) == [f"{first}@example.org".lower()]
    tier = plan.seats[plan.bases[-1]].tier
    same = {one.id for one, base in zip(plan.sections, plan.bases, strict=True) if plan.seats[base].tier == tier}
    assert await readers(AudienceKind.TIER, tier) == sorted(f"{one}@example.org".lower() for one in same)
    assert await readers(AudienceKind.BOOKING, people[first].id) == [f"{first}@example.org".lower()]
    for kind, key, refused in (
        (AudienceKind.SECTION, "nowhere", InvalidInput),
        (AudienceKind.TIER, "gold", InvalidInput),
        (AudienceKind.BOOKING, "bkg_0", BookingNotFound),
    ):
        with pytest.raises(refused):
            await messages.write(ADA, event, Audience(kind, key), "Subject", "Text")
    await refund_booking(ledger, people[first].id, people[first].fence, NOW_US)
    draft = await messages.write(ADA, event, Audience(AudienceKind.BOOKING, people[first].id), "Subject", "Text")
    for act in (messages.preview(event, draft), messages.send(ADA, event, draft)):
        with pytest.raises(NoRecipients):
            await act


async def test_b13_an_event_sends_a_few_messages_per_day_even_if_all_ask_at_once(ledger):
    clock = a_clock()
    office = an_office(ledger, clock)
    event = await on_sale(office)
    booking = await bought(ledger, event, (0,), 1, "ada@example.org")
    messages = writing(ledger, office, clock, Post())

    async def send(audience=ALL):
        draft = await messages.write(ADA, event, audience, "Subject", "Text")
        return await messages.send(ADA, event, draft)

    answers = await asyncio.gather(*(send() for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(one, TooManyMessages) for one in answers) == 20 - MAX_PER_DAY
    one_booking = Audience(AudienceKind.BOOKING, booking.id)
    answers = await asyncio.gather(*(send(one_booking) for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(one, TooManyMessages) for one in answers) == 8 - MAX_PER_BOOKING_AND_DAY
    clock.now_us += DAY_US
    assert (await send()).recipients == 1


async def test_b13_who_lost_the_ticket_while_waiting_in_line_gets_nothing(ledger):
    clock, post = a_clock(), Post()
    office = an_office(ledger, clock)
    event = await on_sale(office)
    booking = await bought(ledger, event, (0,), 1, "ada@example.org")
    await bought(ledger, event, (1,), 2, "bob@example.org")
    messages = writing(ledger, office, clock, post)
    draft = await messages.write(ADA, event, ALL, "Subject", "Text")
    await messages.send(ADA, event, draft)
    await messages.work()
    await refund_booking(ledger, booking.id, booking.fence, NOW_US)
    await sent_out(messages, clock)
    assert post.addresses() == ["bob@example.org"]
    done = await messages.of_event(event, draft.id)
    assert await messages.progress(done) == MailCounts(2, sent=1, skipped=1)


async def test_a_member_has_one_draft_per_event_and_what_was_sent_stays(sqlite_ledger):
    ledger, clock = sqlite_ledger, a_clock()
    office = an_office(ledger, clock)
    event = await on_sale(office)
    booking = await bought(ledger, event, (0,), 1, "ada@example.org")
    messages = writing(ledger, office, clock, Post())
    to_one = Audience(AudienceKind.BOOKING, booking.id)
    drafts = [await messages.write(ADA, event, to_one, f"Subject {n}", "Ada, your seat") for n in range(2)]
    for draft in drafts:
        await messages.keep_draft(draft)
    with pytest.raises(BuyerMessageNotFound):
        await messages.of_event(event, drafts[0].id)
    await messages.send(ADA, event, await messages.of_event(event, drafts[1].id))
    await messages.keep_draft(await messages.write(ADA, event, to_one, "Another", "Text"))
    assert [one.subject for one in await messages.sent(event, 0, 10)] == ["Subject 1"]
    noted = (await ledger.organiser.changes("org_hall", event.id, 0, 1))[0]
    assert "Subject" not in noted.detail  # written to one person: the audit keeps nothing of it
    await ledger.people.add_fan(Fan(booking.fan, "ada@example.org", NOW_US))
    await ledger.people.erase_fan(booking.fan, NOW_US)
    forgotten = await messages.of_event(event, drafts[1].id)
    assert (forgotten.subject, forgotten.text) == ("", "")


@pytest.mark.parametrize(
    ("subject", "text", "param"),
    [
        (" ", "Text", "subject"),
        ("Subject", "\n ", "text"),
        ("x" * 151, "Text", "subject"),
        ("Subject", "x" * 5_001, "text"),
        ("Hello {nane}", "Text", "subject"),
        ("Subject", "Dear {first_name}", "text"),
        ("Subject", "bell \a", "text"),
    ],
)
def test_a_message_is_checked_before_anybody_sees_it(subject, text, param):
    with pytest.raises(InvalidInput) as refused:
        check_message(subject, text)
    assert refused.value.param == param


def test_variables_are_filled_and_other_braces_stay():
    assert check_message("Bcc: x\r\nEvil", " {name}\r\n{ not one } ") == ("Bcc: x Evil", "{name}\n{ not one }")
    assert fill_variables("{name} {{ {} { name }", {"name": "{event}"}) == "{event} {{ {} { name }"


GOOD = {"to": "all", "subject": "Gate {booking}", "text": "Dear {name}: **gate B**"}


@dataclass
class Pages:
    """The organiser's pages of an event with one buyer, Ada."""

    owner: Site
    booking: Booking

    @property
    def at(self) -> str:
        return f"{self.owner.base}/messages"

    async def draft(self) -> str:
        """The address of a good message that is not sent yet."""
        return (await self.owner.post(self.at, **GOOD)).headers["location"]


@pytest.fixture
async def pages(tmp_path: Path) -> AsyncIterator[Pages]:
    async with an_organiser_api(tmp_path) as api:
        yield Pages(Site(api), await api.bought("S-A-1", email="ada@example.org", name="Ada"))


async def test_b13_a_bookings_page_leads_to_a_message_to_its_buyer(pages: Pages) -> None:
    owner, booking = pages.owner, pages.booking
    assert f"{pages.at}?booking={booking.id}" in await owner.get(f"{owner.base}/bookings/{booking.id}")
    assert f'value="booking:{booking.id}" selected' in await owner.get(f"{pages.at}?booking={booking.id}")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"to": "everybody"}, "Choose who gets the message."),
        ({"to": "section:nowhere"}, "Choose who gets the message."),
        ({"to": "booking:bkg_0"}, "Choose who gets the message."),
        ({"to": "section:B"}, "Nobody would get this message"),
        ({"subject": ""}, "Please write a subject"),
        ({"text": "{nane}"}, "There is no such variable. You can use {name}"),
    ],
)
async def test_b13_the_form_says_what_is_wrong_with_a_message(pages: Pages, wrong: dict[str, str], said: str) -> None:
    assert said in (await pages.owner.post(pages.at, 422, **(GOOD | wrong))).text


async def test_b13_a_message_is_shown_as_its_first_reader_gets_it_and_can_be_changed(pages: Pages) -> None:
    owner, draft = pages.owner, await pages.draft()
    preview = await owner.get(draft)
    assert "Send it to 1 address?" in preview
    assert f"Gate {booking_number(pages.booking.id)}" in preview
    mail = await owner.api.client.get(f"{draft}/mail", headers=owner.headers)
    assert "Dear Ada: <strong>gate B</strong>" in mail.text
    assert "sandbox" in mail.headers["content-security-policy"]
    assert mail.headers["x-frame-options"] == "SAMEORIGIN"
    assert "Dear {name}: **gate B**" in await owner.get(f"{pages.at}?change={draft.rpartition('/')[2]}")


async def test_b13_a_message_on_the_pages_is_sent_once_and_counted(pages: Pages, tmp_path) -> None:
    owner, draft = pages.owner, await pages.draft()
    for _ in range(2):  # a second click sends nothing more
        assert (await owner.post(f"{draft}/send")).headers["location"] == f"{draft}?done=sent"
    assert "0 of 1 sent, 0 failed" in await owner.get(draft)
    service = owner.api.platform.organiser.messages
    await service.work()
    await service._mail.worker().drain()
    await service._advance(await owner.api.platform.ledger.buyer_messages.message(draft.rpartition("/")[2]))
    assert "1 of 1 sent, 0 failed" in await owner.get(draft)
    assert "1 of 1" in await owner.get(pages.at)
    (mailed,) = tmp_path.rglob("msg_*.eml")
    assert f"Subject: Gate {booking_number(pages.booking.id)}" in mailed.read_text()


async def test_b13_the_audit_log_has_the_message(pages: Pages) -> None:
    await pages.owner.post(f"{await pages.draft()}/send")
    audit = await pages.owner.get("/organiser/audit")
    assert "Message to buyers" in audit
    assert "Subject: <bdi>Gate {booking}</bdi>" in audit
    assert "Recipients: <bdi>1</bdi>" in audit


async def test_b13_a_bookings_page_shows_its_transfers(pages: Pages) -> None:
    owner, booking, transfers = pages.owner, pages.booking, pages.owner.api.platform.box_office.transfers
    sent = await transfers.send(booking, booking.seats[0], "grace@example.org", "en")
    assert "Not accepted yet" in await owner.get(f"{owner.base}/bookings/{booking.id}")
    await transfers.accept(sent.id, "Grace", "en")
    row = (await owner.get(f"{owner.base}/bookings/{booking.id}")).partition("Ticket transfers</h2>")[2]
    assert [row.index(each) for each in ("ada@example.org", "grace@example.org", "Accepted")]


async def test_b13_messages_are_for_members_who_may_write_them(pages: Pages) -> None:
    owner, draft = pages.owner, await pages.draft()
    for role in (Role.BOX_OFFICE, Role.DOOR, Role.READ_ONLY):
        await (await owner.as_(role)).get(pages.at, 403)
    stranger = await owner.as_(Role.OWNER, "org_other", "stranger")
    for path in (pages.at, draft, f"{draft}/mail"):
        await stranger.get(path, 404)


async def test_b13_a_message_over_the_api_with_a_key_is_sent_once(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        at = f"/v1/organiser/events/{api.event}/messages"
        body = {"subject": "Gate", "text": "*Gate B*", "audience": {"kind": "section", "key": "S"}}
        refused = await api.post(f"{at}/preview", 409, json=body)
        assert refused["code"] == "no_recipients"
        await api.bought("S-A-1", email="ada@example.org")
        await api.ask("PUT", "/v1/organiser/seller", json={"name": "Hall", "contact_email": "hall@example.org"})
        preview = await api.post(f"{at}/preview", json=body)
        assert (preview["recipients"], preview["to"], preview["reply_to"]) == (1, "ada@example.org", "hall@example.org")
        assert "<em>Gate B</em>" in preview["html"]
        sent = [await api.post(at, 202, json=body, headers={"idempotency-key": "one-message"}) for _ in range(2)]
        assert sent[0] == sent[1]
        assert (sent[0]["state"], sent[0]["recipients"], sent[0]["waiting"]) == ("sending", 1, 1)
        assert await api.get(f"{at}/{sent[0]['message']}") == sent[0]
        assert (await api.get(at))["messages"] == [sent[0]]
        for number in range(MAX_PER_DAY):
            status = 202 if number < MAX_PER_DAY - 1 else 409
            answer = await api.post(at, status, json=body)
        assert answer["code"] == "too_many_messages"
        await api.ask("GET", f"{at}/msg_0")
        assert (await api.ask("GET", f"{at}/msg_0")).json()["code"] == "buyer_message_not_found"
        wrong = await api.ask("PUT", "/v1/organiser/seller", json={"name": "Hall", "contact_email": "x\r\nBcc: y"})
        assert (wrong.status_code, wrong.json()["param"]) == (422, "contact_email")
