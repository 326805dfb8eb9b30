"""A number is proven by a code before the first SMS, and nobody makes us pay for calls to numbers of their own."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.channels.sms import SmsChannel
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.attempt_limit import TooManyTries
from frontrow.boxoffice.messages.model.channel_reports import ReportKind
from frontrow.boxoffice.messages.model.messages import Contact, Message, Outcome
from frontrow.boxoffice.messages.model.phone_numbers import CountryNotServed, country_of, read_phone
from frontrow.boxoffice.messages.phone_proofs import PhoneProofs, PhoneStopped, SmsNotSent, SmsOff, WrongPhoneCode
from frontrow.boxoffice.messages.sms_limits import SmsLimits
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput
from frontrow.testing.clock import ManualClock
from tests.boxoffice.messages.own_sms import OwnSms
from tests.boxoffice.shop import NOW, sqlite_url

ADA, PHONE, IP = "fan_ada", "+436641234567", "203.0.113.9"
HOUR_US = 3600 * US_PER_S


class PhoneCase:
    def __init__(self, ledger: SqlLedger) -> None:
        self.ledger, self.clock, self.provider = ledger, ManualClock(NOW), OwnSms()
        self.limits = SmsLimits(
            "memory://", self.clock, per_number="5/hour", per_country="8/hour", countries=("+43", "+1", "+1876")
        )
        self.proofs = PhoneProofs(ledger.messages, self.provider, self.limits, self.clock, b"k" * 32)

    async def send(self, phone: str = PHONE, fan: str = ADA, ip: str = IP) -> None:
        await self.proofs.send_code(fan, phone, ip, "de")

    def code(self) -> str:
        (found,) = re.findall(r"\d{6}", list(self.provider.sent.values())[-1].text)
        return str(found)

    async def contact(self, fan: str = ADA) -> Contact:
        return await self.ledger.messages.contact(fan) or Contact(fan)


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[PhoneCase]:
    ledger = await open_ledger(sqlite_url(tmp_path))
    yield PhoneCase(ledger)
    await ledger.aclose()


async def test_a_code_goes_to_the_number_and_proves_it(case: PhoneCase) -> None:
    await case.send("+43 (664) 123-45/67")
    (sms,) = case.provider.sent.values()
    assert sms.phone == PHONE
    assert "STOP" in sms.text
    assert "Telefonnummer" in sms.text
    assert not (await case.contact()).takes_sms
    with pytest.raises(WrongPhoneCode):
        await case.proofs.confirm(ADA, "000000" if case.code() != "000000" else "000001")
    assert await case.proofs.confirm(ADA, f" {case.code()[:3]} {case.code()[3:]} ") == PHONE
    assert (await case.contact()).takes_sms
    with pytest.raises(WrongPhoneCode):  # it works once
        await case.proofs.confirm(ADA, case.code())


async def test_a_code_is_of_one_fan_and_ends(case: PhoneCase) -> None:
    await case.send()
    with pytest.raises(WrongPhoneCode):
        await case.proofs.confirm("fan_mallory", case.code())
    case.clock.now_us += 600 * US_PER_S
    with pytest.raises(WrongPhoneCode) as over:
        await case.proofs.confirm(ADA, case.code())
    assert over.value.about == {"over": True}


async def test_no_sms_goes_to_a_number_that_nobody_has_proven(case: PhoneCase) -> None:
    channel = SmsChannel(case.provider, case.limits)
    typed, proven = Contact(ADA, phone=PHONE), Contact(ADA, phone=PHONE, proven_phone=PHONE)
    changed = Contact(ADA, phone="+436649999999", proven_phone=PHONE)
    messages = [Message(f"m{n}", "declined", one, "", "", short="x") for n, one in enumerate((typed, proven, changed))]
    outcomes = await channel.send(messages)
    assert [(one.sent, one.final) for one in outcomes] == [(False, True), (True, True), (False, True)]
    assert list(case.provider.sent) == ["m1"]


async def test_codes_are_capped_per_number_whoever_asks(case: PhoneCase) -> None:
    for number in range(3):
        await case.send(fan=f"fan_{number}", ip=f"203.0.113.{number}")
    with pytest.raises(TooManyTries) as refused:
        await case.send(fan="fan_9", ip="203.0.113.99")
    assert refused.value.retry_after_s
    assert len(case.provider.sent) == 3
    case.clock.now_us += 2 * HOUR_US
    await case.send(fan="fan_9", ip="203.0.113.99")


async def test_codes_are_capped_per_fan_and_per_country(case: PhoneCase) -> None:
    for number in range(5):
        await case.send(f"+43664000000{number}", ip=f"203.0.113.{number}")
    with pytest.raises(TooManyTries):  # the sixth of this fan
        await case.send("+436640000009")
    for number in range(3):
        await case.send(f"+43664000001{number}", fan=f"fan_{number}", ip=f"198.51.100.{number}")
    with pytest.raises(TooManyTries):  # the ninth of this country
        await case.send("+436640000019", fan="fan_9", ip="198.51.100.9")
    await case.send("+12025550100", fan="fan_8", ip="198.51.100.8")
    assert len(case.provider.sent) == 9


async def test_messages_over_a_cap_wait_and_are_not_lost(case: PhoneCase) -> None:
    channel = SmsChannel(case.provider, case.limits)
    who = Contact(ADA, phone=PHONE, proven_phone=PHONE)
    messages = [Message(f"m{n}", "declined", who, "", "", short="x") for n in range(6)]
    outcomes = await channel.send(messages)
    assert [one.sent for one in outcomes].count(True) == 5
    (waiting,) = [one for one in outcomes if not one.sent]
    assert not waiting.final
    case.clock.now_us += HOUR_US
    assert (await channel.send(messages[5:]))[0].sent


async def test_some_countries_get_no_sms(case: PhoneCase) -> None:
    for phone in ("+882161234567", "+8801712345678", "+18091234567"):
        with pytest.raises(CountryNotServed):
            await case.send(phone)
    await case.send("+18761234567")
    assert len(case.provider.sent) == 1


async def test_a_number_that_said_stop_gets_no_code(case: PhoneCase) -> None:
    writes = case.ledger.messages.make_block_writes("sms", PHONE, ReportKind.STOPPED, "", NOW)
    await case.ledger.messages.once("reports", "1", writes, NOW)
    with pytest.raises(PhoneStopped):
        await case.send()
    assert not case.provider.sent


async def test_a_provider_that_is_away_is_told_and_the_next_code_counts(case: PhoneCase) -> None:
    case.provider.answer = Outcome(False, final=False, reason="away")
    with pytest.raises(SmsNotSent):
        await case.send()
    case.provider.answer = Outcome(True)
    await case.send()
    await case.proofs.confirm(ADA, case.code())
    assert (await case.contact()).takes_sms


async def test_without_sms_no_code_is_asked_for(case: PhoneCase) -> None:
    proofs = PhoneProofs(case.ledger.messages, None, case.limits, case.clock, b"k" * 32)
    assert not proofs.offered
    with pytest.raises(SmsOff):
        await proofs.send_code(ADA, PHONE, IP, "en")
    for wrong in ("", "0664 1234567", "+0664", "+43664123456789012"):
        with pytest.raises(InvalidInput):
            await case.send(wrong)


@pytest.mark.parametrize(
    ("phone", "country"),
    [
        ("+436641234567", "+43"),
        ("+12025550100", "+1"),
        ("+18765550100", "+1876"),
        ("+79161234567", "+7"),
        ("+8801712345678", "+880"),
        ("+35312345678", "+353"),
        ("+85212345678", "+852"),
        ("+27821234567", "+27"),
        ("+21261234567", "+212"),
    ],
)
def test_a_number_has_a_country(phone: str, country: str) -> None:
    assert country_of(read_phone(phone)) == country
