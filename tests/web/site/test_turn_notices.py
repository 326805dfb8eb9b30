"""Who waits in an event's room and asks for it is told once, shortly before the turn, by the platform's channels."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.app.notice_wiring import platform_notices, platform_senders
from frontrow.boxoffice.adapters.channels.from_settings import open_sms, open_sms_limits
from frontrow.boxoffice.messages.model.channel_reports import ReportKind
from frontrow.core.errors import Unavailable
from frontrow.waitingroom.notices.model import MOST_PER_ADDRESS, TurnNoticeKind
from frontrow.web.platform.platform import Platform
from tests.support.eventually import eventually
from tests.web.api.support import EVENT_ID, a_client, a_platform

ROOM = f"/v1/events/{EVENT_ID}/room"
PAGE = {"accept": "text/html", "accept-language": "de", "sec-fetch-site": "same-origin"}
ADA = {"kind": "email", "to": "Ada@Example.org "}


@dataclass
class Shop:
    """A platform whose room is held, with its mails."""

    platform: Platform
    mails: Path

    @property
    def notices(self) -> Any:
        return self.platform.room.notices

    def sent(self) -> list[Any]:
        return [message_from_bytes(one.read_bytes(), policy=policy.default) for one in self.mails.glob("ntc_*.eml")]

    async def resume(self) -> None:
        await self.platform.room.service.control.resume(EVENT_ID)

    async def kept(self) -> list[tuple[Any, ...]]:
        rows = await self.notices._book._database.query("SELECT address, state FROM console_notices ORDER BY arrival")
        return [tuple(row) for row in rows]


@pytest.fixture(params=["embedded", "clustered"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    stores = {}
    if request.param == "clustered":
        stores = {"redis_url": request.getfixturevalue("redis_url")}
        stores["postgres_url"] = request.getfixturevalue("postgres_ledger_url")
    async with a_platform(tmp_path, **stores) as platform:
        platform.endpoints.room.entry.set_check(EVENT_ID, None)
        await platform.room.service.control.pause(EVENT_ID)
        yield Shop(platform, Path(platform.settings.mail_url))


@contextlib.asynccontextmanager
async def waiting(shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without scripts that waits."""
    async with a_client(shop.platform) as fan:
        joined = await fan.post(f"{ROOM}/join", data={"page": "true"}, headers=PAGE)
        assert joined.status_code == 303, joined.text
        yield fan


async def test_who_asks_on_the_page_is_told_once_in_their_language_and_their_address_is_erased(shop: Shop) -> None:
    async with waiting(shop) as ada, waiting(shop) as bob:
        page = await ada.get(f"{ROOM}/", headers=PAGE)
        assert "Vorher Bescheid bekommen" in page.text
        assert (await ada.get(f"{ROOM}/notice")).json() == {"kinds": ["email"]}
        done = await ada.post(f"{ROOM}/notice", data=ADA, headers=PAGE)
        assert (done.status_code, "Wir sagen Ihnen Bescheid" in done.text) == (200, True), done.text
        assert await shop.notices.send_due(EVENT_ID) == 0, "a held room calls nobody"
        assert await shop.kept() == [("ada@example.org", "waiting")]
        await shop.resume()
        await eventually(shop.sent)
        await eventually(shop.kept, until=lambda rows: rows == [("", "sent")])
        both = platform_notices(
            shop.platform.settings, shop.notices._senders, shop.platform.room.service, shop.platform.clock
        )
        told = await asyncio.gather(*(one.send_due(EVENT_ID) for one in (shop.notices, both) for _ in range(5)))
        await both.aclose()
        assert sum(told) == 0, "a second server, and a second look, send nothing"
        (mail,) = shop.sent()
        assert (mail["to"], mail["subject"]) == ("ada@example.org", "Sie sind bald dran")
        assert f"{shop.platform.settings.public_url.rstrip('/')}{ROOM}/" in mail.get_body().get_content()
        assert (await bob.get(f"{ROOM}/status")).status_code == 200


async def test_what_is_no_request_of_somebody_who_waits_is_refused(shop: Shop) -> None:
    async with waiting(shop) as ada, a_client(shop.platform) as stranger:
        asked = {"accept": "application/json", "sec-fetch-site": "same-origin"}
        other = await ada.post(f"{ROOM}/notice", data=ADA, headers={"sec-fetch-site": "cross-site"})
        assert other.status_code == 403
        assert (await stranger.post(f"{ROOM}/notice", data=ADA, headers=asked)).status_code == 401
        for wrong, status in (
            ({"to": "nobody"}, 422),
            ({"to": "a@b\nbcc: eve@example.org"}, 422),
            ({"kind": "pigeon"}, 422),
            ({"kind": "sms", "to": "+436601234567"}, 404),
        ):
            refused = await ada.post(f"{ROOM}/notice", data=ADA | wrong, headers=asked)
            assert refused.status_code == status, (wrong, refused.text)
        page = await ada.post(f"{ROOM}/notice", data=ADA | {"to": "nobody"}, headers=PAGE)
        assert (page.status_code, "text/html" in page.headers["content-type"]) == (422, True)
        assert await shop.kept() == []


async def test_an_address_is_not_flooded_and_who_withdraws_hears_nothing(shop: Shop) -> None:
    async with contextlib.AsyncExitStack() as stack:
        fans = [await stack.enter_async_context(waiting(shop)) for _ in range(MOST_PER_ADDRESS + 1)]
        statuses = [(await fan.post(f"{ROOM}/notice", data=ADA, headers=PAGE)).status_code for fan in fans]
        assert statuses == [200] * MOST_PER_ADDRESS + [409]
        for fan in fans:
            gone = await fan.post(f"{ROOM}/notice", data={"withdraw": "true"}, headers=PAGE)
            assert gone.status_code == 200
        assert await shop.kept() == []
        await shop.resume()
        assert await shop.notices.send_due(EVENT_ID) == 0
        assert shop.sent() == []


async def test_a_blocked_address_gets_no_notice(shop: Shop) -> None:
    ledger, now_us = shop.platform.ledger, shop.platform.clock()
    writes = ledger.messages.make_block_writes("email", "ada@example.org", ReportKind.BOUNCED, "", now_us)
    await ledger.messages.once("reports", "1", writes, now_us)
    async with waiting(shop) as ada:
        await ada.post(f"{ROOM}/notice", data=ADA, headers=PAGE)
        await shop.resume()
        await eventually(shop.kept, until=lambda rows: rows == [("", "failed")])
        assert shop.sent() == []


async def test_while_its_store_is_away_a_request_is_refused_and_later_accepted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with waiting(shop) as ada:
        database = shop.notices._book._database

        async def away(*_: Any) -> Any:
            raise Unavailable("the database is away", retry_after_s=1)

        with monkeypatch.context() as patch:
            patch.setattr(database, "run", away)
            refused = await ada.post(f"{ROOM}/notice", data=ADA, headers=PAGE | {"accept": "application/json"})
            assert refused.status_code == 503
            assert (await ada.get(f"{ROOM}/", headers=PAGE)).status_code == 200, "people wait on"
        assert (await ada.post(f"{ROOM}/notice", data=ADA, headers=PAGE)).status_code == 200
        await shop.resume()
        await eventually(shop.sent)


async def test_sms_go_only_to_countries_that_the_operator_has_named(tmp_path: Path) -> None:
    from dataclasses import replace

    async with a_platform(tmp_path) as platform:
        for countries, kinds in (((), ["email"]), (("+43",), ["email", "sms"])):
            messages = replace(platform.settings.messages, sms_url="http://127.0.0.1:9/sms", sms_countries=countries)
            settings = replace(platform.settings, messages=messages)
            sms, limits = open_sms(messages, ""), open_sms_limits(messages, "memory://", platform.clock)
            senders = platform_senders(settings, platform.ledger.messages, None, sms, limits)  # type: ignore[arg-type]
            assert [kind.value for kind in senders] == kinds
            await limits.aclose()
        assert TurnNoticeKind.SMS in senders
