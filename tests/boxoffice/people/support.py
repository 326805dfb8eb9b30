"""A platform with people in it, for tests: cheap passwords, mails read back from their folder, staff with TOTP."""

import contextlib
import email
import email.policy
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyotp

from frontrow.app.wiring import Platform, open_platform
from frontrow.boxoffice.people.model.people import Staff, Stage, SubjectKind
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.people.people_settings import PeopleSettings
from frontrow.boxoffice.people.team import Actor
from frontrow.core.clock import US_PER_S
from tests.support.eventually import eventually
from tests.web.api.support import borrowed_app, put_event, settings_for

CHEAP = PeopleSettings(argon2_time_cost=1, argon2_memory_kib=8, argon2_lanes=1)
PASSWORD = "a sentence nobody guesses"
ORGANISER = "org_hall"


class Person(msgspec.Struct):
    """Somebody with a session of their own."""

    id: str
    session: str
    role: str
    staff: Staff | None = None
    totp: str = ""

    @property
    def bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.session}"}


@contextlib.asynccontextmanager
async def opened(folder: Path, people: PeopleSettings = CHEAP, **options: Any) -> AsyncIterator[Platform]:
    """A platform that answers, without its loops and jobs: nothing happens that a test did not ask for."""
    clock = options.pop("clock", None)
    settings = replace(settings_for(folder, **options), people=people)
    async with open_platform(settings, clock=clock) as platform:
        yield platform


@contextlib.asynccontextmanager
async def asking(platform: Platform, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    with borrowed_app(platform) as app:
        transport = httpx.ASGITransport(app, **options)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="https://test") as client:
            yield client


async def member(platform: Platform, role: Role, organiser: str = ORGANISER, name: str = "") -> Person:
    """A member of a team with password, second factor and a full session."""
    people = platform.people
    await people.team.create_organiser("Hall", organiser)
    address = f"{name or role.value}@{organiser.replace('_', '-')}.example.org"
    staff = Staff(
        platform.ids.new("stf"),
        organiser,
        address,
        role.value,
        role,
        await people.passwords.hash(PASSWORD),
        created_at_us=platform.clock(),
    )
    assert await people.book.add_staff(staff)
    secret = pyotp.random_base32()
    sealed = people.vault.seal(secret, f"totp:{staff.id}")
    assert await people.book.enrol_totp(staff.id, sealed, "", 0, [], platform.clock())
    made = await people.sessions.start(SubjectKind.STAFF, staff.id, stage=Stage.FULL)
    return Person(staff.id, made.secret, role.value, staff, secret)


async def api_key(platform: Platform, maker: Person, scopes: list[str]) -> str:
    assert maker.staff is not None
    actor = Actor(maker.id, maker.staff.organiser_id, maker.staff.role)
    return (await platform.people.team.make_key(actor, "key", scopes))[1]


async def fan(platform: Platform, address: str = "") -> Person:
    """A fan with a proven address, or a guest without one."""
    if not address:
        made = await platform.people.fans.start_guest_session("", "en")
    else:
        ask = await platform.people.fans.send_sign_in_link(address, "192.0.2.1", "en")
        made = await platform.people.fans.redeem_link(await mailed(platform, address), ask)
    return Person(made.session.subject, made.secret, made.session.kind.value)


async def mailed(platform: Platform, address: str) -> str:
    """The secret behind `#` in the newest mail with one; waits for one that a running server has in hand."""

    async def texts() -> list[str]:
        return [mail.get_body(("plain",)).get_content() for mail in await mails(platform, address)]

    return _secrets(await eventually(texts, until=_secrets))[-1]


async def mailed_code(platform: Platform, address: str) -> str:
    """The six digits of the newest mail, as they are printed."""
    text = (await mails(platform, address))[-1].get_body(("plain",)).get_content()
    found = re.search(r"\d{3} \d{3}", text)
    assert found is not None, text
    return found[0]


def _secrets(texts: list[str]) -> list[str]:
    return [found[1] for text in texts if (found := re.search(r"#(fr[li]_[\w-]{43})", text))]


async def mails(platform: Platform, address: str) -> list[Any]:
    """Everything sent to this address, oldest first."""
    await platform.people.mail.worker().drain()
    return _in_folder(Path(platform.settings.mail_url), address)


def _in_folder(folder: Path, address: str) -> list[Any]:
    found = []
    for path in sorted(folder.glob("*.eml"), key=lambda one: one.stat().st_mtime_ns):
        one = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
        if one["To"] == address:
            found.append(one)
    return found


def code_now(platform: Platform, person: Person, steps: int = 0) -> str:
    return pyotp.TOTP(person.totp).generate_otp(platform.clock() // (30 * US_PER_S) + steps)


async def on_sale(platform: Platform, organiser: str = ORGANISER, **changes: Any) -> str:
    """An event of this organiser, opened."""
    event = await put_event(platform, organiser_id=organiser, **changes)
    await platform.box_office.openings.refresh()
    return event.id
