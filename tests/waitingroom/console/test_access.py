"""Owners: one-time links, sign-in, sessions, people, keys."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.core.errors import InvalidInput
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.console.access import IDLE_US, WHOLE_US, ConsoleAccess, csrf_of
from frontrow.waitingroom.console.model.errors import OwnerLinkSpent, RightMissing, WrongPassword
from frontrow.waitingroom.console.model.owners import OwnerRole, Scope
from frontrow.waitingroom.console.ports import DocumentKind
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from tests.waitingroom.console.console_rig import PASSWORD, Server

HERE = "127.0.0.1"


@pytest.fixture
async def server(tmp_path: Path, room_keys: RoomKeys) -> AsyncIterator[Server]:
    one = Server(tmp_path, room_keys, ManualClock())
    yield one
    await one.aclose()


async def join(access: ConsoleAccess, link: str, email: str = "ada@example.org") -> object:
    try:
        return await access.use_link(link, email, "Ada", PASSWORD, HERE)
    except Exception as error:
        return error


async def test_the_first_link_makes_one_owner_however_many_use_it(server: Server) -> None:
    link = await server.access.first_link()
    assert link is not None
    tried = await asyncio.gather(*(join(server.access, link, f"a{n}@example.org") for n in range(50)))
    assert sum(not isinstance(one, Exception) for one in tried) == 1
    assert len(await server.access.owners()) == 1
    assert await server.access.first_link() is None


async def test_a_new_first_link_replaces_the_one_before_and_ends_after_a_day(server: Server) -> None:
    old, new = await server.access.first_link(), await server.access.first_link()
    assert old
    assert new
    assert isinstance(await join(server.access, old), OwnerLinkSpent)
    server.clock.advance(us=24 * 3600 * 1_000_000)
    assert isinstance(await join(server.access, new), OwnerLinkSpent)


async def test_nothing_in_the_book_is_a_secret(server: Server, tmp_path: Path) -> None:
    ada = await server.owner()
    _, key = await server.access.make_key(ada, "ops", [Scope.ROOM_READ], [])
    link = await server.access.invite(ada, "bob@example.org", OwnerRole.VIEWER)
    entries = [entry for kind in DocumentKind for entry in await server.book.all(kind)]
    stored = "".join(entry.id + entry.text for entry in entries) + str(await server.book.log("", 0, 100))
    for secret in (ada.secret, key, link, ada.csrf):
        assert secret not in stored


async def test_a_wrong_password_and_an_unknown_address_look_alike_and_are_counted(server: Server) -> None:
    await server.owner()
    for email, password in (("ada@example.org", "wrong"), ("nobody@example.org", PASSWORD)):
        with pytest.raises(WrongPassword):
            await server.access.sign_in(email, password, HERE)
    assert server.per_account.open == {"ada@example.org": 1, "nobody@example.org": 1}
    await server.access.sign_in(" ADA@example.org ", PASSWORD, HERE)
    assert server.per_account.open["ada@example.org"] == 1, "what succeeded is taken back"


async def test_a_session_ends_idle_at_its_end_and_by_signing_out(server: Server) -> None:
    ada = await server.owner()
    assert await server.access.find(ada.secret) is not None
    server.clock.advance(us=IDLE_US)
    assert await server.access.find(ada.secret) is None
    ada = await server.owner()
    for _ in range(WHOLE_US // (IDLE_US - 1_000_000)):
        server.clock.advance(us=IDLE_US - 1_000_000)
        await server.access.find(ada.secret)
    server.clock.advance(us=IDLE_US - 1_000_000)
    assert await server.access.find(ada.secret) is None, "twelve hours are the most"
    ada = await server.owner()
    await server.access.sign_out(ada.secret)
    assert await server.access.find(ada.secret) is None
    assert csrf_of(ada.secret) != csrf_of("fcs_other")


async def test_a_new_password_ends_every_session(server: Server) -> None:
    ada = await server.owner()
    link = await server.access.link_for("ada@example.org", OwnerRole.VIEWER, "command line")
    again = await server.access.use_link(link, "", "", "another long sentence", HERE)
    assert again.owner.role is OwnerRole.OWNER, "a link for somebody known changes no role"
    assert await server.access.find(ada.secret) is None
    with pytest.raises(WrongPassword):
        await server.access.sign_in("ada@example.org", PASSWORD, HERE)


async def test_roles_are_read_on_every_request_and_the_last_owner_stays(server: Server) -> None:
    ada = await server.owner()
    link = await server.access.invite(ada, "Bob@example.org", OwnerRole.VIEWER)
    bob = await server.access.use_link(link, "eve@example.org", "Bob", PASSWORD, HERE)
    assert bob.owner.email == "bob@example.org", "an invitation is for its address"
    with pytest.raises(RightMissing):
        await server.access.invite(bob, "eve@example.org", OwnerRole.OWNER)
    with pytest.raises(RightMissing):
        await server.rooms.create(bob, "spring")
    with pytest.raises(InvalidInput):
        await server.access.remove(ada, ada.owner.id)
    await server.access.remove(ada, bob.owner.id)
    assert await server.access.find(bob.secret) is None


async def test_two_owners_who_remove_each_other_leave_one(server: Server) -> None:
    ada = await server.owner()
    link = await server.access.invite(ada, "bob@example.org", OwnerRole.OWNER)
    bob = await server.access.use_link(link, "", "Bob", PASSWORD, HERE)
    both = (server.access.remove(ada, bob.owner.id), server.access.remove(bob, ada.owner.id))
    await asyncio.gather(*both, return_exceptions=True)
    assert len(await server.access.owners()) == 1


async def test_a_key_does_what_it_is_for_until_it_is_revoked_everywhere(server: Server, tmp_path: Path) -> None:
    ada = await server.owner()
    key, secret = await server.access.make_key(ada, "ops", [Scope.ROOM_READ], ["spring"])
    other = Server(tmp_path, server.room.keys, server.clock)
    await other.rooms.follow()
    for access in (server.access, other.access):
        found = access.key_of(secret)
        assert found is not None
        assert found.allows(Scope.ROOM_READ, "spring")
        assert not found.allows(Scope.ROOM_READ, "autumn")
        assert not found.allows(Scope.ROOM_WRITE, "spring")
    await server.access.revoke_key(ada, key.id)
    await other.rooms.follow()
    assert server.access.key_of(secret) is None
    assert other.access.key_of(secret) is None
    assert server.access.key_of(secret[:-1] + "x") is None
    await other.aclose()
