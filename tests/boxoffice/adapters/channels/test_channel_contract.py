"""Every channel passes one contract, and a channel that breaks it is caught."""

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec
import pytest

from frontrow.boxoffice.adapters.channels.aws_signature import AwsKey
from frontrow.boxoffice.adapters.channels.email import SmtpChannel
from frontrow.boxoffice.adapters.channels.fcm import FcmPusher
from frontrow.boxoffice.adapters.channels.push import PushChannel
from frontrow.boxoffice.adapters.channels.ses import SesChannel
from frontrow.boxoffice.adapters.channels.sms import HttpSmsProvider, SmsChannel
from frontrow.boxoffice.adapters.channels.twilio import TwilioSms
from frontrow.boxoffice.messages.model.messages import SENT, Contact, Message, Outcome
from frontrow.boxoffice.messages.ports.channels import NoteMessage
from frontrow.testing.clock import ManualClock
from tests.boxoffice.adapters.channels.service_account import APP_KEY, service_account
from tests.boxoffice.adapters.channels.sms_caps import no_caps
from tests.boxoffice.adapters.channels.stand_ins import FcmStandIn, SesStandIn, TwilioStandIn
from tests.boxoffice.messages.receivers import http_receiver, smtp_server
from tests.boxoffice.shop import NOW
from tests.contracts.channel import ChannelBench, ChannelContract, caught

Bench = Callable[[], AbstractAsyncContextManager[ChannelBench]]
NOBODY = Contact("fan_none")


def by_phone(number: int) -> Contact:
    phone = f"+43664123456{number}"
    return Contact(f"fan_{number}", phone=phone, proven_phone=phone)


def by_mail(number: int) -> Contact:
    return Contact(f"fan_{number}", f"fan{number}@example.org")


def by_app(number: int) -> Contact:
    return Contact(f"fan_{number}", push=(msgspec.json.encode({"endpoint": f"fcm:device-{number}"}).decode(),))


@contextlib.asynccontextmanager
async def twilio_bench() -> AsyncIterator[ChannelBench]:
    stand_in = TwilioStandIn(ManualClock(NOW))
    async with stand_in.served():
        provider = TwilioSms(stand_in.account, stand_in.token, stand_in.number, api=stand_in.url, timeout_s=5)
        channel = SmsChannel(provider, no_caps())
        yield ChannelBench(
            channel,
            by_phone,
            NOBODY,
            lambda: [one["body"] for one in stand_in.messages],
            lambda on: setattr(stand_in, "away", on),
            lambda on: setattr(stand_in, "busy", on),
            lambda count: setattr(stand_in, "lose", count),
        )
        await channel.aclose()


@contextlib.asynccontextmanager
async def plain_sms_bench() -> AsyncIterator[ChannelBench]:
    async with http_receiver() as receiver:
        arrived: dict[str, str] = {}
        state = {"status": "200 OK", "lose": 0}

        def answer(headers: dict[str, str], body: bytes) -> str:
            if state["status"] == "200 OK":
                arrived[headers["idempotency-key"]] = msgspec.json.decode(body)["text"]
                if state["lose"]:
                    state["lose"] = 0
                    return "504 Gateway Timeout"
            return str(state["status"])

        receiver.answer = answer
        provider = HttpSmsProvider(f"http://127.0.0.1:{receiver.port}/sms", "key")
        yield ChannelBench(
            SmsChannel(provider, no_caps()),
            by_phone,
            NOBODY,
            lambda: list(arrived.values()),
            lambda on: state.update(status="503 Away" if on else "200 OK"),
            lambda on: state.update(status="429 Busy" if on else "200 OK"),
            lambda count: state.update(lose=count),
        )
        await provider.aclose()


@contextlib.asynccontextmanager
async def fcm_bench() -> AsyncIterator[ChannelBench]:
    clock = ManualClock(NOW)
    stand_in = FcmStandIn(APP_KEY, clock)
    async with stand_in.served():
        pusher = FcmPusher(service_account(stand_in.url), clock, api=stand_in.url, timeout_s=5)
        channel = PushChannel(apps=pusher)
        yield ChannelBench(
            channel,
            by_app,
            NOBODY,
            lambda: [text for device in stand_in.shown.values() for text in device.values()],
            lambda on: setattr(stand_in, "away", on),
            lambda on: setattr(stand_in, "busy", on),
            lambda count: setattr(stand_in, "lose", count),
        )
        await channel.aclose()


@contextlib.asynccontextmanager
async def ses_bench() -> AsyncIterator[ChannelBench]:
    stand_in = SesStandIn()
    async with stand_in.served():
        key = AwsKey(stand_in.key_id, stand_in.secret)
        sender = "tickets@example.org"
        channel = SesChannel(stand_in.region, key, sender, ManualClock(NOW), api=stand_in.url, timeout_s=5)
        yield ChannelBench(
            channel,
            by_mail,
            NOBODY,
            lambda: [str(mail.get_content()).strip() for _, mail in stand_in.mails],
            lambda on: setattr(stand_in, "away", on),
            lambda on: setattr(stand_in, "busy", on),
            lambda count: setattr(stand_in, "lose", count),
            copies_after_a_lost_answer=2,  # SES knows no key
            notes=True,
        )
        await channel.aclose()


@contextlib.asynccontextmanager
async def smtp_bench() -> AsyncIterator[ChannelBench]:
    with smtp_server() as box:
        channel = SmtpChannel("127.0.0.1", box.port, "tickets@example.org")
        people = [by_mail(number).email for number in range(3)]
        yield ChannelBench(
            channel,
            by_mail,
            NOBODY,
            lambda: [str(mail.get_content()).strip() for mail in box.mails],
            lambda on: setattr(box, "refuse", dict.fromkeys(people, "421 going down") if on else {}),
            lambda on: setattr(box, "refuse", dict.fromkeys(people, "451 too many mails") if on else {}),
            None,  # tests/boxoffice/messages/test_notify.py has a server that hangs
            notes=True,
        )


BENCHES = {"twilio": twilio_bench, "sms": plain_sms_bench, "fcm": fcm_bench, "ses": ses_bench, "smtp": smtp_bench}


class TestChannels(ChannelContract):
    @pytest.fixture(params=list(BENCHES))
    async def bench(self, request: pytest.FixtureRequest) -> AsyncIterator[ChannelBench]:
        async with BENCHES[request.param]() as made:
            yield made


class Hopeful:
    """A broken channel: it calls everything sent, whatever the provider said."""

    def __init__(self, bench: ChannelBench) -> None:
        self.name, self._inner = bench.channel.name, bench.channel

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        await self._inner.send(messages, note)
        return [SENT] * len(messages)


class Forgetful:
    """A broken channel: a repeated message has another id, so no provider recognises it."""

    def __init__(self, bench: ChannelBench) -> None:
        self.name, self._inner, self._count = bench.channel.name, bench.channel, 0

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        self._count += 1
        other = [msgspec.structs.replace(one, id=f"{one.id}-{self._count}") for one in messages]
        return await self._inner.send(other, note)


@pytest.mark.parametrize(
    ("broken", "failing"),
    [
        (Hopeful, "test_a_provider_that_is_away_is_tried_again"),
        (Hopeful, "test_a_person_without_an_address_is_final_and_holds_up_nobody"),
        (Forgetful, "test_a_lost_answer_is_no_success_and_makes_no_more_copies_than_promised"),
    ],
)
async def test_a_channel_that_breaks_the_contract_is_caught(broken: type, failing: str) -> None:
    @contextlib.asynccontextmanager
    async def canary() -> AsyncIterator[ChannelBench]:
        async with plain_sms_bench() as bench:
            bench.channel = broken(bench)
            yield bench

    assert failing in await caught(ChannelContract, canary)
