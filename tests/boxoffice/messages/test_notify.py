"""Notifications (B10, B15): the confirmation at least once with the same ticket, by preference, in one's language."""

import asyncio
import base64
import email
import email.policy
import errno
import io
import json
import re
from collections.abc import AsyncIterator, Sequence
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path
from unittest.mock import Mock

import http_ece
import msgspec
import pytest
import zxingcpp
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from PIL import Image
from py_vapid import Vapid02

from frontrow.boxoffice.adapters.channels.email import FolderChannel, SmtpChannel
from frontrow.boxoffice.adapters.channels.in_app import InAppChannel
from frontrow.boxoffice.adapters.channels.push import PushChannel, WebPush
from frontrow.boxoffice.adapters.channels.sms import HttpSmsProvider, SmsChannel
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.facts.model import (
    BookingConfirmed,
    BookingRefunded,
    BookingReseated,
    Fact,
    HoldExpired,
    OfferMade,
    PaymentDeclined,
    PriorityGranted,
    RefundFailed,
    RefundPaid,
    TicketReturned,
    WaitlistEnded,
)
from frontrow.boxoffice.holds.model.bookings import BookingState, Move
from frontrow.boxoffice.messages.mail_links import LinkPurpose, MailLinks, OpenedLink
from frontrow.boxoffice.messages.model.messages import SENT, Contact, Delivery, Message, Outcome
from frontrow.boxoffice.messages.notifications import KIND, Notifier
from frontrow.boxoffice.messages.ports.channels import Channel, NoteMessage
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.organiser.brands import Brands
from frontrow.boxoffice.payments.model.payments import Payment, PaymentState
from frontrow.boxoffice.people.model.people import Staff
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.boxoffice.tickets.model.wallets import Wallet, WalletKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.core.errors import Unavailable
from frontrow.core.failures import failures_here
from frontrow.shared.heavy_work import HeavyWork
from frontrow.testing.clock import ManualClock
from tests.boxoffice.adapters.channels.sms_caps import no_caps
from tests.boxoffice.messages.receivers import Postbox, http_receiver, smtp_server
from tests.boxoffice.shop import EVENT, NOW, shop_event, sqlite_url
from tests.boxoffice.tickets.samples import KEYS
from tests.contracts.ledger_contract import Bench
from tests.support.booking_moves import refund_booking
from tests.support.eventually import eventually
from tests.support.pictures import a_logo

WORK_CLAIM_S = 120
LINKS = MailLinks(b"k" * 32, "https://tickets.example.org")


class NotifierCase:
    """A sold booking, a notifier and its channels."""

    def __init__(self, ledger: SqlLedger, fact: BookingConfirmed) -> None:
        self.ledger, self.fact = ledger, fact
        self.clock = ManualClock(NOW)

    def notifier(self, *channels: Channel) -> Notifier:
        renderer = TicketRenderer(self.ledger, KEYS)
        return Notifier(self.ledger, renderer, channels, self.clock, LINKS, Receipts(self.ledger, renderer))

    async def tell(self, notifier: Notifier, fact: Fact | None = None, number: int = 1) -> None:
        """As the consumer does it; twice, as the bus may."""
        for _ in range(2):
            queries = await notifier.plan(number, fact or self.fact)
            await self.ledger.messages.once("notify", str(number), queries, self.clock())


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[NotifierCase]:
    ledger = await open_ledger(sqlite_url(tmp_path))
    await ledger.catalogue.put_venue(Venue("ven_1", "Waldbühne", "0" * 64, "Berlin", "DE", "Europe/Berlin"), NOW)
    await ledger.catalogue.put_event(shop_event(name="Aurora <Live>", starts_at_us=NOW), NOW)
    bench = Bench(ledger, ledger)
    bench.event, bench.clock.now_us = EVENT, NOW
    hold = await bench.paid(3, 4, fan="fan_1")
    booking = await ledger.booking(hold.booking_id)
    assert booking is not None
    await ledger.confirm(booking.id, booking.fence, NOW, Issuer(KEYS).issue(booking))
    fact = BookingConfirmed(booking.id, EVENT, "fan_1", booking.fence, (3, 4), NOW, 10_050, "EUR")
    yield NotifierCase(ledger, fact)
    await ledger.aclose()


@pytest.fixture
def post() -> AsyncIterator[Postbox]:
    with smtp_server() as box:
        yield box


async def in_vain(delivery: Delivery, outcome: Outcome) -> None:
    """What a worker notes that dies before it is written."""


def qr_codes(mail: EmailMessage) -> list[str]:
    images = [part.get_content() for part in mail.walk() if (part.get_filename() or "").startswith("tkt_")]
    return [zxingcpp.read_barcodes(Image.open(io.BytesIO(image)))[0].text for image in images]


async def test_the_confirmation_is_sent_at_least_once_with_the_same_tickets_each_time(
    case: NotifierCase, post: Postbox
) -> None:
    """B10, B15: real SMTP; the worker dies after sending, the next one sends the very same tickets again."""
    await case.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org"), NOW)
    notifier = case.notifier(SmtpChannel("127.0.0.1", post.port, "tickets@example.org", sender_name="Box Office"))
    await case.tell(notifier)
    due = await case.ledger.messages.claim_deliveries(KIND, NOW, WORK_CLAIM_S * 1_000_000, 100, 100)
    mails = [one for one in due if "email" in one.queue]
    assert await notifier.send(mails, in_vain) == [Outcome(True)]  # and dies here
    case.clock.advance(WORK_CLAIM_S)
    await notifier.worker().drain()
    assert len(post.mails) == 2
    tickets = await case.ledger.tickets.tickets_of(case.fact.booking_id)
    for mail in post.mails:
        assert (mail["To"], mail["Subject"]) == ("ada@example.org", "Your tickets for Aurora <Live>")
        assert mail["From"] == "Box Office <tickets@example.org>"
        assert parsedate_to_datetime(str(mail["Date"]))  # every mail has one (RFC 5322), or it looks like spam
        assert qr_codes(mail) == [ticket.code for ticket in tickets]
        names = [part.get_filename() for part in mail.iter_attachments()]
        assert names == ["tickets.pdf", "event.ics"]
        text = mail.get_body(("plain",)).get_content()  # type: ignore[union-attr]
        listed = [line for line in text.splitlines() if any(ticket.id in line for ticket in tickets)]
        assert len(listed) == len(tickets)
        assert all(re.fullmatch(r"  seat \d+  tkt_\w+", line) for line in listed), listed
        assert "Total: €0.00" in text  # the receipt says what the ledger has
        html = mail.get_body(("html",)).get_content()  # type: ignore[union-attr]
        assert "Aurora &lt;Live&gt;" in html
        assert "<Live>" not in html
    first, second = ([part.get_content() for part in mail.iter_attachments()] for mail in post.mails)
    assert first == second
    assert post.mails[0]["Message-ID"] == post.mails[1]["Message-ID"]
    await notifier.worker().drain()
    assert len(post.mails) == 2
    assert await case.ledger.messages.delivery_counts(KIND) == {"sent": 1}


async def test_the_mail_links_to_the_wallets_that_the_organiser_has_keys_for(
    case: NotifierCase, tmp_path: Path
) -> None:
    """Issue 15: only those, and not those whose certificate has expired."""
    await case.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org", locale="de"), NOW)
    notifier = case.notifier(FolderChannel(tmp_path / "outbox"))
    change = Change(Editor("stf_1", "org_default"), "change_wallet", "", NOW)
    told = []
    for number, ends_us in enumerate((None, NOW + WORK_CLAIM_S * 5_000_000, NOW), start=1):
        for wallet in Wallet if ends_us is not None else ():
            await case.ledger.wallets.put(WalletKeys("org_default", wallet, "a", "h", ends_us, "sealed", NOW), change)
        await case.tell(notifier, number=number)
        await notifier.worker().drain()
        (path,) = (tmp_path / "outbox").glob("*.eml")
        mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
        path.unlink()
        told.append([mail.get_body((kind,)).get_content() for kind in ("plain", "html")])  # type: ignore[union-attr]
    assert ["Wallet" in text for text in (*told[0], *told[2])] == [False] * 4
    plain, page = told[1]
    action = next(line for line in plain.splitlines() if line.startswith("https://tickets.example.org/open#frm_"))
    assert f"Zu Apple Wallet hinzufügen:\n{action}/apple-wallet" in plain.replace("\r\n", "\n")
    assert f'<a href="{action}/google-wallet" style="color:inherit">In Google Wallet speichern</a>' in page


async def test_the_mail_has_the_colour_and_the_logo_of_who_sells(case: NotifierCase, tmp_path: Path) -> None:
    """Issue 15: the ticket's PDF has the colour too."""
    await case.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org"), NOW)
    notifier = case.notifier(FolderChannel(tmp_path / "outbox"))
    brands, editor = Brands(case.ledger, case.clock, HeavyWork()), Editor("stf_1", "org_default")
    mails = []
    for number in (1, 2):
        await case.tell(notifier, number=number)
        await notifier.worker().drain()
        (path,) = (tmp_path / "outbox").glob("*.eml")
        mails.append(email.message_from_bytes(path.read_bytes(), policy=email.policy.default))
        path.unlink()
        await brands.change_colour(editor, "#ffd400")
        logo = (await brands.put_logo(editor, a_logo())).logo
    assert logo is not None
    pages = [mail.get_body(("html",)).get_content() for mail in mails]  # type: ignore[union-attr]
    assert ["cid:logo" in page for page in pages] == [False, True]
    assert ["background:#ffd400;color:#000000" in page for page in pages] == [False, True]
    images = {part["content-id"]: part.get_content() for part in mails[1].walk() if part["content-id"]}
    assert images["<logo>"] == await case.ledger.pictures.find(logo.hash)
    drawn = [[part.get_content() for part in mail.walk() if "/pdf" in part.get_content_type()] for mail in mails]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(("locale", "subject"), [("en", "New seats for"), ("de", "Neue Plätze für")])
async def test_b13_moved_to_other_seats_is_said_in_words_of_its_own(
    case: NotifierCase, tmp_path: Path, locale: str, subject: str
) -> None:
    await case.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org", locale=locale), NOW)
    notifier = case.notifier(FolderChannel(tmp_path / "outbox"))
    booking = case.fact
    moved = BookingReseated(booking.booking_id, EVENT, "fan_1", booking.fence, (3, 4), NOW, left=(1, 2))
    await case.tell(notifier, moved)
    await notifier.worker().drain()
    (path,) = (tmp_path / "outbox").glob("*.eml")
    mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert mail["Subject"] == f"{subject} Aurora <Live>"
    assert qr_codes(mail) == [ticket.code for ticket in await case.ledger.tickets.tickets_of(booking.booking_id)]


@pytest.mark.parametrize(
    ("locale", "subject"),
    [
        ("en", "Aurora <Live> is cancelled: the waitlist has ended"),
        ("de", "Aurora <Live> ist abgesagt: Die Warteliste ist beendet"),
        ("es", "Aurora <Live> se canceló: la lista de espera ha terminado"),
        ("fr", "Aurora <Live> est annulé : la liste d’attente est close"),
        ("pt", "Aurora <Live> foi cancelado: a lista de espera terminou"),
        ("ja", "Aurora <Live> は中止になりました。キャンセル待ちは終了しました"),
        ("ar", "أُلغيت \u2068Aurora <Live>\u2069: انتهت قائمة الانتظار"),
    ],
)
async def test_who_waited_for_a_cancelled_event_hears_so_once(
    case: NotifierCase, tmp_path: Path, locale: str, subject: str
) -> None:
    await case.ledger.messages.put_contact(Contact("fan_9", email="ada@example.org", locale=locale), NOW)
    notifier = case.notifier(FolderChannel(tmp_path / "outbox"), InAppChannel(case.ledger.messages, case.clock))
    await case.tell(notifier, WaitlistEnded("", EVENT, "fan_9", 0, (), NOW, entry_id="wle_9"), 7)
    await notifier.worker().drain()
    (path,) = (tmp_path / "outbox").glob("*.eml")
    mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert mail["Subject"] == subject
    text = mail.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    assert f"https://tickets.example.org/events/{EVENT}" in text.splitlines()
    (page,) = await notifier.write_in_app(await case.ledger.messages.in_app("fan_9"))
    assert page.subject == subject


async def test_a_failed_refund_is_mailed_once_to_every_member_who_may_refund(
    case: NotifierCase, tmp_path: Path
) -> None:
    """Issue 11: it was shown on the organiser's pages only, where nobody looks at night."""
    roles = {"own": Role.OWNER, "box": Role.BOX_OFFICE, "gate": Role.DOOR, "read": Role.READ_ONLY, "gone": Role.OWNER}
    for name, role in roles.items():
        await case.ledger.people.add_staff(
            Staff(f"stf_{name}", "org_default", f"{name}@example.org", name.title(), role)
        )
    await case.ledger.people.add_staff(Staff("stf_other", "org_other", "other@example.org", "Other", Role.OWNER))
    booking_id = case.fact.booking_id
    fact = RefundFailed(booking_id, EVENT, "fan_1", 1, (3, 4), NOW, refund_id="rfd_1", reason="lost_or_stolen_card")
    notifier = case.notifier(FolderChannel(tmp_path / "outbox"))
    await case.tell(notifier, fact)
    await case.ledger.people.remove_staff("org_default", "stf_gone", "stf_own", NOW)
    await notifier.worker().drain()
    await notifier.worker().drain()
    read = (
        email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
        for path in (tmp_path / "outbox").glob("*.eml")
    )
    mails = {mail["To"]: mail for mail in read}
    assert mails.keys() == {"own@example.org", "box@example.org"}
    for mail in mails.values():
        assert mail["Subject"] == "A refund for Aurora <Live> failed"
        text = mail.get_body(("plain",)).get_content()
        assert "lost_or_stolen_card" in text
        assert f"https://tickets.example.org/organiser/events/{EVENT}/bookings/{booking_id}" in text.splitlines()
    assert await case.ledger.messages.delivery_counts(KIND) == {"sent": 2, "given_up": 1}


async def test_preferences_decide_the_channels_and_the_page_has_everything(case: NotifierCase, tmp_path: Path) -> None:
    folder = tmp_path / "outbox"
    channels = (FolderChannel(folder), InAppChannel(case.ledger.messages, case.clock))
    notifier = case.notifier(*channels)
    await case.tell(notifier)  # no contact known: the page alone
    await case.ledger.messages.put_contact(
        Contact("fan_1", "ada@example.org", locale="de-AT", channels=("email", "sms")), NOW
    )
    declined = PaymentDeclined("bkg_9", EVENT, "fan_1", 9, (5,), NOW)
    await case.tell(notifier, declined, 2)
    expired = HoldExpired("bkg_8", EVENT, "fan_1", 8, (6,), NOW)
    await case.tell(notifier, expired, 3)
    await notifier.worker().drain()
    assert [path.name for path in folder.iterdir()] == ["declined-bkg_9-2.eml"]
    page = await notifier.write_in_app(await case.ledger.messages.in_app("fan_1"))
    assert {one.id.partition("-")[0] for one in page} == {"confirmed", "declined", "expired"}
    assert next(one for one in page if one.id.startswith("declined")).subject == "Zahlung für Aurora <Live> abgelehnt"
    assert await case.ledger.messages.delivery_counts(KIND) == {"sent": 1}, "the page needs no delivery"


@pytest.mark.parametrize("state", ["waiting", "given up"])
async def test_seats_that_an_outage_cost_are_explained_by_one_message(
    case: NotifierCase, tmp_path: Path, state: str
) -> None:
    """B8: "Your payment was declined" and "You have priority" went to the same person, and nobody had declined. The
    sweeper and the worker may be in any order. A server of version 0.1 writes `PaymentDeclined` as well."""
    folder = tmp_path / "outbox"
    notifier = case.notifier(FolderChannel(folder), InAppChannel(case.ledger.messages, case.clock))
    await case.ledger.messages.put_contact(Contact("fan_1", "ada@example.org", channels=("email",)), NOW)
    bench = Bench(case.ledger, case.ledger)
    bench.event, bench.clock.now_us = EVENT, NOW
    hold = await bench.hold(7, fan="fan_1", amount_minor=4500)
    payment = Payment("pay_1", hold.booking_id, 1, "simulated", 4500, "EUR", created_at_us=NOW, changed_at_us=NOW)
    save = case.ledger.payments.save_payment
    await save(payment, now_us=NOW, move=Move.BEGIN_PAYMENT, fence=hold.fence)
    await save(payment := payment.retry_later(NOW, answered=False), now_us=NOW)
    if state == "given up":
        await save(payment.moved(PaymentState.VOIDED, NOW, reason="provider_unavailable"), now_us=NOW)
    common = (hold.booking_id, EVENT, "fan_1", hold.fence, (7,), NOW)
    await case.tell(notifier, HoldExpired(*common, was=BookingState.PAYING), 2)
    await case.tell(notifier, PriorityGranted(*common, until_us=NOW + HOUR_US), 3)
    await case.tell(notifier, PaymentDeclined(*common, reason="provider_unavailable"), 4)
    await notifier.worker().drain()
    [path] = folder.iterdir()
    mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert mail["Subject"] == "We could not take your payment for Aurora <Live>"
    text = mail.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    assert "could not be reached until your time to pay was over" in " ".join(text.split())
    assert "declined" not in text
    assert [one.id.partition("-")[0] for one in await case.ledger.messages.in_app("fan_1")] == ["priority"]


@pytest.mark.parametrize(
    ("reason", "subject"),
    [
        ("event_cancelled", "Aurora <Live> is cancelled"),
        ("organiser", "Your booking for Aurora <Live> is cancelled"),
        ("card_declined", "Payment declined for Aurora <Live>"),
    ],
)
async def test_only_a_payment_that_somebody_declined_is_called_declined(
    case: NotifierCase, tmp_path: Path, reason: str, subject: str
) -> None:
    notifier = case.notifier(FolderChannel(tmp_path / "outbox"))
    await case.ledger.messages.put_contact(Contact("fan_1", "ada@example.org", channels=("email",)), NOW)
    await case.tell(notifier, PaymentDeclined("bkg_9", EVENT, "fan_1", 9, (5,), NOW, reason=reason), 2)
    await notifier.worker().drain()
    [path] = (tmp_path / "outbox").iterdir()
    mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert mail["Subject"] == subject


async def test_the_page_is_written_when_somebody_reads_it_in_the_language_they_have_then(case: NotifierCase) -> None:
    """Issue 14: nobody rendered, claimed and recorded a text that most fans never look at."""
    notifier = case.notifier(InAppChannel(case.ledger.messages, case.clock))
    await case.tell(notifier)
    assert await notifier.worker().drain() == 0
    (kept,) = await case.ledger.messages.in_app("fan_1")
    assert (kept.subject, kept.body) == ("", "")
    (english,) = await notifier.write_in_app([kept])
    assert (english.subject, english.notice) == ("Your tickets for Aurora <Live>", "")
    tickets = [one.id for one in await case.ledger.tickets.tickets_of(case.fact.booking_id)]
    assert all(ticket in english.body for ticket in tickets)
    await case.ledger.messages.put_contact(Contact("fan_1", locale="de"), NOW)
    await refund_booking(case.ledger, case.fact.booking_id, case.fact.fence, NOW)
    (german,) = await notifier.write_in_app([kept])
    assert german.subject == "Ihre Tickets für Aurora <Live>"
    assert not any(ticket in german.body for ticket in tickets), "they are not valid any more"
    assert await notifier.write_in_app([german]) == [german], "what was written once stays"


async def test_a_message_about_something_that_is_gone_does_not_break_the_page(case: NotifierCase) -> None:
    notifier = case.notifier(InAppChannel(case.ledger.messages, case.clock))
    await case.tell(notifier, HoldExpired("bkg_8", "evt_gone", "fan_1", 8, (6,), NOW), 3)
    await case.tell(notifier)
    page = await case.ledger.messages.in_app("fan_1")
    assert len(page) == 2
    assert [one.id for one in await notifier.write_in_app(page)] == [f"confirmed-{case.fact.booking_id}-1"]


async def test_a_refunded_booking_is_told_no_dead_tickets(case: NotifierCase, tmp_path: Path) -> None:
    await case.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org"), NOW)
    notifier = case.notifier(FolderChannel(tmp_path / "outbox"))
    await case.tell(notifier)
    await refund_booking(case.ledger, case.fact.booking_id, case.fact.fence, NOW)
    await notifier.worker().drain()
    assert not (tmp_path / "outbox").exists()
    assert await case.ledger.messages.delivery_counts(KIND) == {"given_up": 1}


async def test_a_worker_that_dies_repeats_only_the_mail_that_it_was_sending(case: NotifierCase, post: Postbox) -> None:
    """B15: each mail is recorded before the next one of its queue. A killed worker repeated up to 50 of them."""
    await case.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org"), NOW)
    notifier = case.notifier(SmtpChannel("127.0.0.1", post.port, "tickets@example.org"))
    for number in range(6):
        await case.tell(notifier, PaymentDeclined(f"bkg_{number}", EVENT, "fan_1", 9, (5,), NOW), number)
    post.hangs_at = 4
    dying = asyncio.create_task(notifier.worker().drain())
    await eventually(lambda: len(post.mails) == 4)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        if task is dying or "DeliveryWorker" in repr(task.get_coro()):
            task.cancel()
    await asyncio.wait([dying])
    case.clock.advance(WORK_CLAIM_S)
    await notifier.worker().drain()
    ids = [str(mail["Message-ID"]) for mail in post.mails]
    assert ids == [f"<declined-bkg_{number}-{number}@example.org>" for number in (0, 1, 2, 3, 3, 4, 5)]
    assert await case.ledger.messages.delivery_counts(KIND) == {"sent": 6}


async def test_a_mail_server_that_is_away_is_heard_once_and_each_mail_by_its_booking(
    case: NotifierCase, post: Postbox, caplog: pytest.LogCaptureFixture
) -> None:
    """O3: mails waited in silence. An operator saw `frontrow_mails_waiting` grow, and no line said why."""
    caplog.set_level("INFO", "frontrow")
    await case.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org"), NOW)
    notifier = case.notifier(SmtpChannel("127.0.0.1", 1, "tickets@example.org"))
    for number in range(3):
        await case.tell(notifier, PaymentDeclined(f"bkg_{number}", EVENT, "fan_1", 9, (5,), NOW), number)
    worker = notifier.worker()
    before = sum(failures_here().counts.values())
    await worker.drain()
    case.clock.advance(10)
    await worker.drain()
    heard = [one for one in caplog.records if getattr(one, "action", "") == "job_failed"]
    assert [one.levelname for one in heard] == ["WARNING"], "one cause, one line"
    assert heard[0].problem.startswith("mail server: ")  # type: ignore[attr-defined]
    assert sum(failures_here().counts.values()) - before > 1, "and every failure is counted"
    retried = [vars(one) for one in caplog.records if getattr(one, "action", "") == "delivery_retried"]
    assert [one["about"] for one in retried] == [f"declined-bkg_{number}-{number}:email" for number in range(3)]
    assert all(5 <= one["retry_in_s"] <= 6 for one in retried)
    assert "ada@" not in caplog.text


async def test_a_folder_that_takes_no_mails_is_heard(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "outbox").write_text("a file where the folder should be")
    for _ in range(2):
        outcomes = await FolderChannel(tmp_path / "outbox").send([message(email="ada@example.org")] * 2)
        assert [(one.sent, one.final, one.tried) for one in outcomes] == [(False, False, True)] * 2
    (heard,) = [one for one in caplog.records if getattr(one, "action", "") == "job_failed"]
    assert heard.exc_info
    assert heard.exc_info[0] is FileExistsError, "the cause, and nothing that followed from it"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "mkdir", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        outcomes = await FolderChannel(tmp_path / "outbox").send([message(email="ada@example.org")])
    assert not outcomes[0].tried, "our own disk: no attempt"
    assert [one.exc_info[1].errno for one in caplog.records if one.exc_info][1:] == [errno.ENOSPC]  # type: ignore[union-attr]


def message(fan: str = "fan_1", **contact: object) -> Message:
    contact["proven_phone"] = contact.get("phone", "")
    return Message(
        f"m-{fan}",
        "declined",
        Contact(fan, **contact),
        "Subject",
        "Text",
        "<p>Html</p>",
        "Short",
        url="https://t.example/open#x",
    )  # type: ignore[arg-type]


async def test_a_batch_of_mails_takes_one_connection_and_each_has_its_own_outcome(post: Postbox) -> None:
    post.refuse = {"gone@example.org": "550 no such person", "busy@example.org": "450 try later"}
    channel = SmtpChannel("127.0.0.1", post.port, "tickets@example.org")
    people = [f"p{n}@example.org" for n in range(50)]
    people += ["gone@example.org", "busy@example.org", "", "two@a@b", "x@y\r\nBcc: all@example.org"]
    outcomes = await channel.send([message(f"fan {n}", email=one) for n, one in enumerate(people)])
    assert [one.sent for one in outcomes] == [True] * 50 + [False] * 5
    assert [one.final for one in outcomes[50:]] == [True, False, True, True, True]
    assert (len(post.mails), post.connections) == (50, 1)
    post.mails.clear()

    async def note_two(place: int, outcome: Outcome) -> None:
        assert (place, outcome) in ((0, SENT), (1, SENT))
        if place == 1:
            raise Unavailable("the ledger does not answer")

    outcomes = await channel.send([message(email=one) for one in people[:4]], note_two)
    assert [(one.sent, one.tried) for one in outcomes] == [(True, True)] * 2 + [(False, False)] * 2
    assert len(post.mails) == 2, "what could not be noted is not sent"
    nowhere = SmtpChannel("127.0.0.1", 1, "tickets@example.org")
    assert [(one.sent, one.final) for one in await nowhere.send([message(email="a@b.org")] * 2)] == [(False, False)] * 2


async def test_web_push_is_encrypted_for_the_browser_and_signed_by_us() -> None:
    """B10: the receiver's side is checked with the standards' own tools: http_ece decrypts, py_vapid verifies."""
    browser, secret = ec.generate_private_key(ec.SECP256R1()), b"0123456789abcdef"
    public = browser.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    vapid = Vapid02()
    vapid.generate_keys()
    raw = vapid.private_key.private_numbers().private_value.to_bytes(32, "big")
    key = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    async with http_receiver() as receiver:
        keys = {
            name: base64.urlsafe_b64encode(value).decode().rstrip("=")
            for name, value in (("p256dh", public), ("auth", secret))
        }
        device = json.dumps({"endpoint": f"http://127.0.0.1:{receiver.port}/push/1", "keys": keys})
        inside = json.dumps({"endpoint": "https://169.254.169.254/latest", "keys": keys})
        outgoing = SafeHttpClient(allow_http=True, trusted=frozenset({"127.0.0.1"}))
        channel = PushChannel(web=WebPush(key, "mailto:ops@example.org", outgoing, ManualClock(NOW * 2)))
        outcomes = await channel.send([message(push=(inside, device)), message(), message(push=("no json",))])
        assert [(one.sent, one.final) for one in outcomes] == [(True, True), (False, True), (False, True)]
        ((_, headers, body),) = receiver.calls
        told = json.loads(http_ece.decrypt(body, private_key=browser, auth_secret=secret, version="aes128gcm"))
        assert told == {"id": "m-fan_1", "title": "Subject", "body": "Short", "url": "https://t.example/open#x"}
        assert (headers["content-encoding"], int(headers["ttl"]) > 0) == ("aes128gcm", True)
        assert Vapid02.verify(headers["authorization"])
        receiver.answer = lambda headers, body: "410 Gone"
        assert (await channel.send([message(push=(device,))]))[0].final
        receiver.answer = lambda headers, body: "503 Busy"
        assert not (await channel.send([message(push=(device,))]))[0].final
        await outgoing.aclose()


async def test_sms_goes_to_the_provider_with_an_idempotency_key() -> None:
    async with http_receiver() as receiver:
        provider = HttpSmsProvider(f"http://127.0.0.1:{receiver.port}/sms", "key")
        channel = SmsChannel(provider, no_caps())
        sent = await channel.send([message(phone="+4930123"), message("fan_2")])
        assert [(one.sent, one.final) for one in sent] == [(True, True), (False, True)]
        ((_, headers, body),) = receiver.calls
        assert (headers["idempotency-key"], headers["authorization"]) == ("m-fan_1", "Bearer key")
        assert json.loads(body) == {"to": "+4930123", "text": "Short\nhttps://t.example/open#x", "from": "Frontrow"}
        for status, final in (("400 Bad", True), ("429 Slow", False), ("500 Oops", False)):
            receiver.answer = lambda headers, body, status=status: status  # type: ignore[misc]
            assert (await channel.send([message(phone="1")]))[0] == Outcome(
                False, final, f"SMS provider answered {status[:3]}"
            )
    unreachable = (await channel.send([message(phone="1")]))[0]
    assert (unreachable.sent, unreachable.final) == (False, False)
    await provider.aclose()


async def test_a_message_that_cannot_be_rendered_holds_up_no_other(case: NotifierCase, tmp_path: Path) -> None:
    await case.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org"), NOW)
    notifier = case.notifier(FolderChannel(tmp_path / "outbox"))
    await case.tell(notifier, PaymentDeclined("bkg_1", "evt_that_is_gone", "fan_1", 9, (5,), NOW), 1)
    await case.tell(notifier, PaymentDeclined("bkg_2", EVENT, "fan_1", 9, (5,), NOW), 2)
    await notifier.worker().drain()
    assert [path.name for path in (tmp_path / "outbox").iterdir()] == ["declined-bkg_2-2.eml"]
    assert await case.ledger.messages.delivery_counts(KIND) == {"sent": 1, "waiting": 1}


HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


@pytest.mark.parametrize(
    ("fact", "opens"),
    [
        (BookingConfirmed("bkg_X", EVENT, "fan_1", 1, (3, 4), NOW), OpenedLink(LinkPurpose.BOOKING, "bkg_X", 0)),
        (BookingRefunded("bkg_X", EVENT, "fan_1", 1, (3,), NOW), OpenedLink(LinkPurpose.BOOKING, "bkg_X", 0)),
        (RefundPaid("bkg_X", EVENT, "fan_1", 1, (3,), NOW), OpenedLink(LinkPurpose.BOOKING, "bkg_X", 0)),
        (RefundFailed("bkg_X", EVENT, "fan_1", 1, (3,), NOW), OpenedLink(LinkPurpose.BOOKING, "bkg_X", 0)),
        (TicketReturned("bkg_X", EVENT, "fan_1", 1, (3,), NOW), OpenedLink(LinkPurpose.BOOKING, "bkg_X", 0)),
        (
            PriorityGranted("bkg_X", EVENT, "fan_1", 1, (3,), NOW, until_us=NOW + HOUR_US),
            OpenedLink(LinkPurpose.PRIORITY, "bkg_X", (NOW + HOUR_US + DAY_US) // 1_000_000),
        ),
        (
            OfferMade("bkg_X", EVENT, "fan_1", 1, (3,), NOW, offer_id="ofr_1", expires_at_us=NOW + HOUR_US),
            OpenedLink(LinkPurpose.OFFER, "ofr_1", (NOW + HOUR_US + DAY_US) // 1_000_000),
        ),
    ],
)
async def test_every_mail_has_the_link_that_does_what_it_is_about(
    case: NotifierCase, tmp_path: Path, fact: Fact, opens: OpenedLink
) -> None:
    """Issue 11: the offer mail had no link. One link, bound to its purpose, with an end; none in the ledger."""
    fact = msgspec.structs.replace(fact, booking_id=case.fact.booking_id)
    subject = opens.subject if opens.purpose is LinkPurpose.OFFER else case.fact.booking_id
    await case.ledger.messages.put_contact(Contact("fan_1", email="ada@example.org", locale="ja"), NOW)
    notifier = case.notifier(FolderChannel(tmp_path / "outbox"), InAppChannel(case.ledger.messages, case.clock))
    await case.tell(notifier, fact)
    due = await case.ledger.messages.claim_deliveries(KIND, NOW, WORK_CLAIM_S * 1_000_000, 100, 100)
    assert not any("frm_" in one.body for one in due)
    for one in due:
        assert await notifier.send([one], in_vain) == [Outcome(True)]
    (path,) = (tmp_path / "outbox").glob("*.eml")
    mail = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    text = mail.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    (url,) = [line for line in text.splitlines() if line.startswith("https://")]
    address, _, capability = url.partition("#")
    assert address == "https://tickets.example.org/open"
    link = LINKS.read(capability)
    assert link is not None
    assert (link.purpose, link.subject) == (opens.purpose, subject)
    assert link.expires_s == (opens.expires_s or (NOW + 30 * DAY_US) // 1_000_000)
    (kept,) = await case.ledger.messages.in_app("fan_1")
    (page,) = await notifier.write_in_app([kept])
    assert "frm_" not in kept.notice + page.body  # the ledger holds no usable link
    assert (
        f"https://tickets.example.org/{'offers' if opens.purpose is LinkPurpose.OFFER else 'bookings'}/{subject}"
        in (page.body)
    )


def test_a_link_opens_only_what_it_was_signed_for() -> None:
    text = LINKS.capability(LinkPurpose.BOOKING, "bkg_1", 5_000_000)
    link = LINKS.read(text)
    assert link == OpenedLink(LinkPurpose.BOOKING, "bkg_1", 5)
    assert (link.ended(4_999_999), link.ended(5_000_000)) == (False, True)
    changed = [text.replace("booking", "offer"), text.replace("bkg_1", "bkg_2"), text.replace(".5.", ".9."), text[:-1]]
    for other in [*changed, text + "x", "frm_", "frm_...", "é" * 9, "", text.removeprefix("frm_"), text * 9]:
        assert LINKS.read(other) is None
    assert MailLinks(b"l" * 32, "https://x.example").read(text) is None
    unsigned = MailLinks(b"", "https://x.example/")
    assert unsigned.url(LinkPurpose.OFFER, "ofr_1", 1) == "https://x.example/offers/ofr_1"
    assert unsigned.read(unsigned.capability(LinkPurpose.BOOKING, "bkg_1", 9)) is None


class RecordingChannel:
    """A channel that remembers its batches."""

    name = "email"

    def __init__(self) -> None:
        self.batches: list[int] = []

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        self.batches.append(len(messages))
        await asyncio.sleep(0)
        return [Outcome(True)] * len(messages)


async def test_messages_travel_in_batches(case: NotifierCase) -> None:
    channel = RecordingChannel()
    notifier = case.notifier(channel)
    for number in range(200):
        fan = f"fan_{number}"
        await case.ledger.messages.put_contact(Contact(fan, email="a@example.org"), NOW)
        fact = PaymentDeclined(f"bkg_{number}", EVENT, fan, 9, (5,), NOW)
        await case.ledger.messages.once("n", str(number), await notifier.plan(number, fact), NOW)
    await notifier.worker().drain()
    assert sum(channel.batches) == 200
    assert len(channel.batches) <= 16
