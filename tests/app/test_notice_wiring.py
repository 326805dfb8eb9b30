"""Which channels tell people that their turn in the waiting room is near."""

from pathlib import Path
from typing import Any

from frontrow.app.notice_wiring import open_notices
from frontrow.boxoffice.adapters.channels.from_settings import MessageSettings
from frontrow.core.clock import SystemClock
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.notices.model import TurnNotice, TurnNoticeKind

SMS_URL = "http://127.0.0.1:9/sms"


def notices_of(folder: Path, **messages: Any) -> Any:
    settings = RoomSettings(folder=str(folder))
    return open_notices(settings, MessageSettings(sms_url=SMS_URL, **messages), None, SystemClock())  # type: ignore[arg-type]


async def test_sms_go_only_to_countries_that_the_operator_has_named(tmp_path: Path) -> None:
    """Nobody has proven a number that is typed into a room's page, and somebody else pays for dear ones."""
    nowhere, austria = notices_of(tmp_path), notices_of(tmp_path, sms_countries=("+43",))
    assert (nowhere.kinds, austria.kinds) == ((), (TurnNoticeKind.SMS,))
    notice = TurnNotice("ntc_1", "aurora", 0, 0, 1, TurnNoticeKind.SMS, "+15551234567", "en", 0)
    refused = await austria._senders[TurnNoticeKind.SMS].send(notice)
    assert (refused.ok, refused.final) == (False, True)
    for notices in (nowhere, austria):
        await notices.aclose()


async def test_mail_by_ses_has_the_keys_of_the_messages(tmp_path: Path) -> None:
    settings = RoomSettings(folder=str(tmp_path), mail="ses:eu-west-1?from=room@example.org")
    keys = MessageSettings(aws_key_id="AKIA", aws_secret="s")
    notices = open_notices(settings, keys, None, SystemClock())  # type: ignore[arg-type]
    assert notices.kinds == (TurnNoticeKind.EMAIL,)
    await notices.aclose()
