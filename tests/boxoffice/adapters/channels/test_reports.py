"""What SES and Twilio report: genuine ones are read, forged, foreign, old and doubled ones are not acted on."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from frontrow.boxoffice.adapters.channels.email import FolderChannel
from frontrow.boxoffice.adapters.channels.sns import SnsReader
from frontrow.boxoffice.adapters.channels.twilio import TwilioReader, TwilioSms
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.messages.channel_reports import ChannelReports
from frontrow.boxoffice.messages.deliveries import OpenAddresses
from frontrow.boxoffice.messages.model.channel_reports import ReportKind
from frontrow.boxoffice.messages.model.messages import Contact, Message
from frontrow.boxoffice.messages.ports.channels import Sms
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput, NotFound, Unauthorised
from frontrow.testing.clock import ManualClock
from tests.boxoffice.adapters.channels.stand_ins import TwilioStandIn
from tests.boxoffice.messages.receivers import http_receiver
from tests.boxoffice.shop import NOW, sqlite_url
from tests.support.log_lines import log_lines

TOPIC = "arn:aws:sns:eu-west-1:123456789012:mail-reports"
HOST = "https://sns.eu-west-1.amazonaws.com"
CERTIFICATE = f"{HOST}/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem"
HERE = "https://tickets.example.org/v1/channels/twilio"
TO = "+436641234567"


class Sns:
    """A stand-in for SNS, written from its documentation: it signs messages and serves its certificate."""

    key: ClassVar = rsa.generate_private_key(65537, 2048)

    def __init__(self) -> None:
        self.fetched: list[str] = []
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
        moment = datetime.fromtimestamp(NOW // US_PER_S, UTC)
        made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.key.public_key())
        made = made.serial_number(1).not_valid_before(moment - timedelta(days=1))
        made = made.not_valid_after(moment + timedelta(days=30))
        self.pem = made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    async def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        return self.pem if url.endswith(".pem") else b"<ConfirmSubscriptionResponse/>"

    def message(self, said: Any, *, version: str = "2", at_us: int = NOW, **changes: str) -> dict[str, str]:
        moment = datetime.fromtimestamp(at_us // US_PER_S, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        message = {
            "Type": "Notification",
            "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "TopicArn": TOPIC,
            "Message": json.dumps(said),
            "Timestamp": moment,
            "SignatureVersion": version,
            "SigningCertURL": CERTIFICATE,
            **changes,
        }
        names = ["Message", "MessageId", "SubscribeURL", "Subject", "Timestamp", "Token", "TopicArn", "Type"]
        text = "".join(f"{name}\n{message[name]}\n" for name in names if name in message)
        kind = hashes.SHA1() if version == "1" else hashes.SHA256()
        message["Signature"] = base64.b64encode(self.key.sign(text.encode(), padding.PKCS1v15(), kind)).decode()
        return message


def bounce(address: str, kind: str = "Permanent") -> dict[str, Any]:
    people = [{"emailAddress": address, "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 user unknown"}]
    return {"eventType": "Bounce", "bounce": {"bounceType": kind, "bouncedRecipients": people}, "mail": {}}


def complaint(address: str) -> dict[str, Any]:
    people = [{"emailAddress": address}]
    return {"notificationType": "Complaint", "complaint": {"complainedRecipients": people}}


class ReportCase:
    def __init__(self, ledger: SqlLedger) -> None:
        self.sns, self.ledger, self.clock = Sns(), ledger, ManualClock(NOW)
        readers = [SnsReader(TOPIC, fetch=self.sns.fetch), TwilioReader(TwilioStandIn.account, TwilioStandIn.token)]
        self.reports = ChannelReports(ledger.messages, readers, self.clock)
        self.twilio = TwilioStandIn(self.clock)

    async def from_sns(self, message: dict[str, str]) -> int:
        return await self.reports.handle("ses", "https://x.example", json.dumps(message).encode(), {})

    async def from_twilio(self, url: str = HERE, **form: str) -> int:
        form = {"AccountSid": TwilioStandIn.account, "MessageSid": "SM1", **form}
        return await self.reports.handle("twilio", url, urlencode(form).encode(), self.twilio.signed(url, form))

    async def reason(self, channel: str, address: str) -> ReportKind | None:
        found = await self.ledger.messages.blocked([(channel, address)])
        return found[channel, address].reason if found else None


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[ReportCase]:
    ledger = await open_ledger(sqlite_url(tmp_path))
    yield ReportCase(ledger)
    await ledger.aclose()


@pytest.mark.parametrize("version", ["1", "2"])
async def test_a_bounce_stops_further_mail_to_that_address_and_to_no_other(
    case: ReportCase, tmp_path: Path, version: str
) -> None:
    with log_lines() as lines:
        assert await case.from_sns(case.sns.message(bounce("Ada@Example.org"), version=version)) == 1
        assert [one["action"] for one in lines()] == ["address_blocked"]
        assert "ada" not in json.dumps(lines()).lower(), "an address is in no line of the log"
    channel = OpenAddresses(FolderChannel(tmp_path / "outbox"), case.ledger.messages)
    people = ["ada@example.org", "grace@example.org"]
    messages = [Message(f"m-{one}", "confirmed", Contact("f", one), "S", "T") for one in people]
    noted: list[int] = []

    async def note(place: int, outcome: object) -> None:
        noted.append(place)

    gone, sent = await channel.send(messages, note)
    assert (gone.sent, gone.final, sent.sent) == (False, True, True)
    assert "does not exist" in gone.reason
    assert [path.name for path in (tmp_path / "outbox").iterdir()] == ["m-grace_example.org.eml"]
    assert await case.ledger.messages.unblock("email", "ada@example.org", NOW)
    assert (await channel.send(messages[:1]))[0].sent
    assert not await case.ledger.messages.unblock("email", "ada@example.org", NOW)


async def test_a_doubled_report_is_heard_once_and_a_complaint_stays_the_reason(case: ReportCase) -> None:
    twice = case.sns.message(complaint("ada@example.org"))
    assert [await case.from_sns(twice) for _ in range(2)] == [1, 0]
    assert case.reports.heard == {("email", "complained"): 1}
    assert await case.from_sns(case.sns.message(bounce("ada@example.org"), MessageId="another")) == 1
    assert await case.reason("email", "ada@example.org") is ReportKind.COMPLAINED
    # a report that comes again after the address was opened by hand blocks nothing
    await case.ledger.messages.unblock("email", "ada@example.org", NOW)
    assert await case.from_sns(twice) == 0
    assert await case.reason("email", "ada@example.org") is None


async def test_a_full_mailbox_blocks_nobody(case: ReportCase) -> None:
    assert await case.from_sns(case.sns.message(bounce("ada@example.org", "Transient"))) == 1
    assert await case.reason("email", "ada@example.org") is None
    assert case.reports.heard == {("email", "delayed"): 1}


FORGED: dict[str, Callable[[dict[str, str]], None]] = {
    "another address in the text": lambda one: one.update(Message=json.dumps(bounce("grace@example.org"))),
    "no signature": lambda one: one.pop("Signature") and None,
    "another signature": lambda one: one.update(Signature=base64.b64encode(b"x" * 256).decode()),
    "a signature that is no text": lambda one: one.update(Signature="%%%"),
    "a version that nobody knows": lambda one: one.update(SignatureVersion="3"),
    "a kind that nobody knows": lambda one: one.update(Type="UnsubscribeConfirmation"),
    "a certificate of somebody else": lambda one: one.update(
        SigningCertURL="https://sns.eu-west-1.amazonaws.com.evil.example/SimpleNotificationService-1.pem"
    ),
    "a certificate in somebody's bucket": lambda one: one.update(
        SigningCertURL="https://s3.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem"
    ),
    "a certificate elsewhere at SNS": lambda one: one.update(SigningCertURL=f"{HOST}/somebody/else.pem"),
    "a certificate without TLS": lambda one: one.update(SigningCertURL=CERTIFICATE.replace("https", "http")),
    "a certificate by another user": lambda one: one.update(SigningCertURL=CERTIFICATE.replace("//", "//sns@")),
    "a certificate at another port": lambda one: one.update(SigningCertURL=CERTIFICATE.replace(".com", ".com:8443")),
}


@pytest.mark.parametrize("how", FORGED)
async def test_a_forged_report_is_refused_and_changes_nothing(case: ReportCase, how: str) -> None:
    message = case.sns.message(bounce("ada@example.org"))
    FORGED[how](message)
    with pytest.raises(Unauthorised):
        await case.from_sns(message)
    assert await case.reason("email", "ada@example.org") is None
    assert await case.reason("email", "grace@example.org") is None
    assert all(url == CERTIFICATE for url in case.sns.fetched), "nothing but SNS's certificate was fetched"


async def test_a_report_of_another_topic_or_another_day_is_refused(case: ReportCase) -> None:
    with pytest.raises(Unauthorised):
        await case.from_sns(case.sns.message(bounce("a@b.org"), TopicArn=TOPIC + "-of-somebody-else"))
    day = 86_400 * US_PER_S
    for at_us in (NOW - 6 * day, NOW + day):
        with pytest.raises(Unauthorised):
            await case.from_sns(case.sns.message(bounce("a@b.org"), at_us=at_us))
    case.clock.now_us = NOW + 60 * day
    with pytest.raises(Unauthorised, match="certificate"):
        await case.from_sns(case.sns.message(bounce("a@b.org"), at_us=NOW + 60 * day))
    with pytest.raises(InvalidInput):
        await case.reports.handle("ses", "https://x.example", b"[1", {})
    with pytest.raises(NotFound):
        await case.reports.handle("mailgun", "https://x.example", b"{}", {})


async def test_a_subscription_is_confirmed_only_at_sns_itself(case: ReportCase) -> None:
    confirm = f"{HOST}/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token=2336412f"
    asked = {"Type": "SubscriptionConfirmation", "Token": "2336412f", "SubscribeURL": confirm}
    assert await case.from_sns(case.sns.message("You have chosen to subscribe", **asked)) == 0
    assert case.sns.fetched == [CERTIFICATE, confirm]
    inside = asked | {"SubscribeURL": "https://169.254.169.254/latest"}
    with pytest.raises(Unauthorised):
        await case.from_sns(case.sns.message("x", **inside))
    assert case.sns.fetched == [CERTIFICATE, confirm]
    assert await case.from_sns(case.sns.message("Successfully validated SNS topic", MessageId="test")) == 0


async def test_stop_and_start_from_a_phone(case: ReportCase) -> None:
    assert await case.from_twilio(From=TO, To="+15005550006", Body=" stop ", OptOutType="STOP") == 1
    assert await case.reason("sms", TO) is ReportKind.STOPPED
    assert await case.from_twilio(From=TO, Body="stop") == 0, "the same one again"
    assert await case.from_twilio(MessageSid="SM2", From=TO, Body="When does it start?") == 0
    assert await case.reason("sms", TO) is ReportKind.STOPPED
    assert await case.from_twilio(MessageSid="SM3", From=TO, Body="START") == 1
    assert await case.reason("sms", TO) is None
    assert case.reports.heard == {("sms", "stopped"): 1, ("sms", "resumed"): 1}


async def test_start_does_not_bring_back_a_number_that_does_not_exist(case: ReportCase) -> None:
    url = f"{HERE}?message=confirmed-bkg_1-7"
    assert await case.from_twilio(url, To=TO, MessageStatus="sent") == 0, "not its end yet"
    assert await case.from_twilio(url, To=TO, MessageStatus="undelivered", ErrorCode="30005") == 1
    assert await case.reason("sms", TO) is ReportKind.BOUNCED
    await case.from_twilio(MessageSid="SM9", From=TO, Body="start")
    assert await case.reason("sms", TO) is ReportKind.BOUNCED


async def test_how_an_sms_ended_is_told_and_a_phone_that_is_off_is_not_blocked(case: ReportCase) -> None:
    with log_lines() as lines:
        assert await case.from_twilio(f"{HERE}?message=m-1", To=TO, MessageStatus="undelivered", ErrorCode="30003") == 1
        assert [one["action"] for one in lines()] == ["message_delayed"]
    assert await case.from_twilio(f"{HERE}?message=m-2", MessageSid="SM5", To=TO, MessageStatus="delivered") == 1
    assert await case.from_twilio(HERE, MessageSid="SM6", To=TO, MessageStatus="failed", ErrorCode="21610") == 1
    assert await case.reason("sms", TO) is ReportKind.STOPPED


async def test_a_forged_report_of_twilio_is_refused(case: ReportCase) -> None:
    form = {"AccountSid": TwilioStandIn.account, "MessageSid": "SM1", "From": TO, "Body": "STOP"}
    genuine = case.twilio.signed(HERE, form)
    other = TwilioStandIn(case.clock)
    other.token = "somebody's token"
    for body, headers, url in (
        (form | {"From": "+4366400000"}, genuine, HERE),
        (form, {}, HERE),
        (form, other.signed(HERE, form), HERE),
        (form, genuine, HERE + "?message=x"),
        (form | {"AccountSid": "AC9"}, case.twilio.signed(HERE, form | {"AccountSid": "AC9"}), HERE),
    ):
        with pytest.raises(Unauthorised):
            await case.reports.handle("twilio", url, urlencode(body).encode(), headers)
    assert await case.reason("sms", TO) is None
    assert await case.reports.handle("twilio", HERE, urlencode(form).encode(), genuine) == 1


async def test_a_worker_that_died_after_twilio_took_the_sms_sends_no_second_one() -> None:
    """The next worker does not know what the first one did: it asks Twilio."""
    clock = ManualClock(NOW)
    stand_in = TwilioStandIn(clock)
    async with stand_in.served():
        sms = Sms(TO, "Your tickets\nhttps://t.example/open#x", "confirmed-bkg_1-7", NOW)
        for _ in range(2):  # two processes
            provider = TwilioSms(stand_in.account, stand_in.token, stand_in.number, api=stand_in.url)
            assert (await provider.send(sms)).sent
            await provider.aclose()
        assert len(stand_in.messages) == 1
        provider = TwilioSms(stand_in.account, stand_in.token, stand_in.number, api=stand_in.url, callback_url=HERE)
        clock.now_us = NOW + 3_600 * US_PER_S
        later = Sms(TO, sms.text, "confirmed-bkg_1-8", clock())
        assert (await provider.send(later)).sent
        assert len(stand_in.messages) == 2, "the same words about a later fact are another message"
        assert urlsplit(stand_in.callback).query == "message=confirmed-bkg_1-8"
        stand_in.messages[-1]["status"] = "failed"
        assert (await provider.send(later)).sent
        assert len(stand_in.messages) == 3, "one that Twilio could not deliver may be tried again"
        stand_in.refused[TO] = 21610
        gone = await provider.send(Sms(TO, "x", "k", clock()))
        assert (gone.sent, gone.final) == (False, True)
        await provider.aclose()


async def test_an_sms_is_not_sent_while_twilio_does_not_say_what_it_has() -> None:
    async with http_receiver() as receiver:
        receiver.answer = lambda headers, body: "500 Away"
        provider = TwilioSms("AC1", "t", "+15005550006", api=f"http://127.0.0.1:{receiver.port}")
        outcome = await provider.send(Sms(TO, "x", "k", NOW))
        assert (outcome.sent, outcome.final) == (False, False)
        assert [line.split(" ")[0] for line, _, _ in receiver.calls] == ["GET"]
        await provider.aclose()
