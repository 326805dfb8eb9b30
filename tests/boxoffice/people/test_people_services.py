"""Signing in, teams, links and being forgotten, as services over an embedded platform (B13, B15)."""

import asyncio

import pytest

from frontrow.boxoffice.attempt_limit import TooManyTries
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.people.model.password_rules import checked_password
from frontrow.boxoffice.people.model.people import (
    LastOwner,
    LinkSpent,
    NotAllowed,
    OtherBrowser,
    Stage,
    WrongCredentials,
    secret_hash,
)
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.people.passwords import Passwords
from frontrow.boxoffice.people.people_settings import PeopleSettings
from frontrow.boxoffice.people.team import Actor
from frontrow.core.errors import InvalidInput
from frontrow.shared.vault import SealBroken, Vault
from frontrow.testing.clock import ManualClock
from tests.boxoffice.people.support import (
    CHEAP,
    ORGANISER,
    PASSWORD,
    Person,
    code_now,
    fan,
    mailed,
    mails,
    member,
    opened,
)

DAY_S = 86_400


def actor(person: Person) -> Actor:
    assert person.staff is not None
    return Actor(person.id, person.staff.organiser_id, person.staff.role)


async def test_a_member_signs_in_with_password_then_code_and_each_code_once(tmp_path):
    async with opened(tmp_path) as platform:
        owner, accounts = await member(platform, Role.OWNER), platform.people.staff
        half = await accounts.sign_in(owner.staff.email, PASSWORD, "", "192.0.2.1")
        assert half.session.stage is Stage.TOTP
        found = await platform.people.sessions.find(half.secret)
        assert found.permissions() == frozenset(), "half signed in may do nothing"
        code = code_now(platform, owner)
        full = await accounts.complete_second_step(found, code)
        assert (await platform.people.sessions.find(full.secret)).permissions()
        assert await platform.people.sessions.find(half.secret) is None, "the half session is gone"
        with pytest.raises(WrongCredentials):
            await accounts.sign_in(owner.staff.email, PASSWORD, code, "192.0.2.1")
        with pytest.raises(WrongCredentials):
            await accounts.sign_in(owner.staff.email, PASSWORD, code_now(platform, owner, 2), "192.0.2.1")
        later = await accounts.sign_in(owner.staff.email, PASSWORD, code_now(platform, owner, 1), "192.0.2.1")
        assert later.session.stage is Stage.FULL


async def test_the_second_factor_is_set_up_before_anything_else_and_recovery_codes_work_once(tmp_path):
    async with opened(tmp_path) as platform:
        people = platform.people
        organiser = await people.team.create_organiser("New Hall")
        staff = await people.team.add_owner(organiser.id, "Ada@Example.org", "Ada", PASSWORD)
        begun = await people.staff.sign_in("ada@example.ORG", PASSWORD, "", "192.0.2.1")
        session = await people.sessions.find(begun.secret)
        assert session.stage is Stage.ENROL
        other = await people.staff.sign_in(staff.email, PASSWORD, "", "192.0.2.1")
        enrolment = await people.staff.begin_enrolment(session, "")
        assert enrolment.secret not in repr(enrolment)
        person = Person(staff.id, "", "owner", staff, enrolment.secret)
        with pytest.raises(WrongCredentials):
            await people.staff.finish_enrolment(session, enrolment.pending, "000000x")
        stranger = await people.sessions.find(other.secret)
        with pytest.raises(SealBroken):
            await people.staff.finish_enrolment(stranger, enrolment.pending, code_now(platform, person))
        full, codes = await people.staff.finish_enrolment(session, enrolment.pending, code_now(platform, person))
        assert len(set(codes)) == 10
        assert await people.sessions.find(other.secret) is None, "every other session ended"
        assert (await people.sessions.find(full.secret)).stage is Stage.FULL
        tries = [people.staff.sign_in(staff.email, PASSWORD, codes[0].lower(), f"192.0.2.{n}") for n in range(4)]
        done = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(not isinstance(one, Exception) for one in done) == 1
        hashes = [secret_hash(f"recovery {staff.id}", code.replace("-", "")) for code in codes]
        left = [await people.book.use_recovery_code(staff.id, one) for one in hashes]
        assert left == [False] + [True] * 9


async def test_a_new_password_ends_every_other_session(tmp_path):
    async with opened(tmp_path) as platform:
        owner, people = await member(platform, Role.OWNER), platform.people
        second = await people.staff.sign_in(owner.staff.email, PASSWORD, code_now(platform, owner), "192.0.2.1")
        session = await people.sessions.find(owner.session)
        with pytest.raises(WrongCredentials):
            await people.staff.change_password(session, "not my password at all", "another long sentence")
        made = await people.staff.change_password(session, PASSWORD, "another long sentence")
        assert await people.sessions.find(second.secret) is None
        assert await people.sessions.find(owner.session) is None, "this one goes on under a new secret"
        assert await people.sessions.find(made.secret) is not None
        with pytest.raises(WrongCredentials):
            await people.staff.sign_in(owner.staff.email, PASSWORD, "", "192.0.2.1")


async def test_a_password_hashed_with_older_settings_is_hashed_again_on_the_next_sign_in(tmp_path):
    dearer = PeopleSettings(argon2_time_cost=2, argon2_memory_kib=16, argon2_lanes=1)
    async with opened(tmp_path, dearer) as platform:
        owner = await member(platform, Role.OWNER)
        before = await Passwords(CHEAP).hash(PASSWORD)
        book = platform.people.book
        assert await book.change_password(owner.id, before, owner.staff.password_hash, platform.clock())
        await platform.people.staff.sign_in(owner.staff.email, PASSWORD, "", "192.0.2.1")
        after = (await platform.people.book.staff(owner.id)).password_hash
        assert ("t=1" in before, "t=2" in after, "argon2id" in after) == (True, True, True)


def test_production_passwords_cost_what_rfc_9106_asks_for():
    defaults = PeopleSettings()
    assert (defaults.argon2_time_cost, defaults.argon2_memory_kib, defaults.argon2_lanes) == (3, 65_536, 4)


@pytest.mark.parametrize(
    "bad", ["short", "x" * 257, "aaaaaaaaaaaaaaaa", "password123456", "Frontrow 2026 2026", "ada.lovelace 1815 12"]
)
def test_passwords_that_guessers_try_first_are_refused(bad):
    with pytest.raises(InvalidInput):
        checked_password(bad, "ada.lovelace@example.org")


async def test_sessions_end_when_idle_at_their_end_and_when_revoked(tmp_path):
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as platform:
        sessions = platform.people.sessions
        owner = await member(platform, Role.OWNER)
        for _ in range(6):
            clock.advance(2 * 3600 - 1)
            assert (await sessions.find(owner.session) is not None) == (
                clock.now_us < 1_700_000_000_000_000 + 12 * 3600 * 10**6
            )
        idle = await member(platform, Role.DOOR)
        clock.advance(2 * 3600)
        assert await sessions.find(idle.session) is None, "idle for two hours"
        one, two = await fan(platform, "f@example.org"), await fan(platform, "f@example.org")
        assert one.id == two.id
        listed = await sessions.of(one.id)
        assert len(listed) == 2
        await sessions.end(one.id, (await sessions.find(one.session)).id)
        assert await sessions.find(one.session) is None
        assert await sessions.find(two.session) is not None


async def test_a_magic_link_works_once_in_its_browser_and_in_time(tmp_path):
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as platform:
        fans = platform.people.fans
        ask = await fans.send_sign_in_link("Fan@Example.org", "192.0.2.1", "de")
        link = await mailed(platform, "fan@example.org")
        (mail,) = await mails(platform, "fan@example.org")
        assert mail["Subject"] == "Ihr Anmeldelink"
        with pytest.raises(OtherBrowser):
            await fans.redeem_link(link, "fra_another")
        tries = await asyncio.gather(*(fans.redeem_link(link, ask) for _ in range(50)), return_exceptions=True)
        (won,) = [one for one in tries if not isinstance(one, Exception)]
        assert all(isinstance(one, LinkSpent) for one in tries if isinstance(one, Exception))
        assert (await fans.fan(won.session.subject)).email == "fan@example.org"
        ask = await fans.send_sign_in_link("fan@example.org", "192.0.2.1", "en")
        link = await mailed(platform, "fan@example.org")
        clock.advance(900)
        with pytest.raises(LinkSpent):
            await fans.redeem_link(link, ask)
        await platform.people.book.purge_people(clock())
        with pytest.raises(LinkSpent):
            await fans.redeem_link(link, ask)


async def test_the_ledger_holds_no_usable_secret(tmp_path):
    """Whoever reads the file has no session, link, key, invitation, TOTP secret or recovery code."""
    async with opened(tmp_path) as platform:
        owner = await member(platform, Role.OWNER)
        await platform.people.team.invite(actor(owner), "new@example.org", Role.DOOR, "en")
        _, key = await platform.people.team.make_key(actor(owner), "till", ["door:scan"])
        ask = await platform.people.fans.send_sign_in_link("f@example.org", "192.0.2.1", "en")
        raw = b"".join(path.read_bytes() for path in tmp_path.rglob("*.db*"))
        told = [owner.session, owner.totp, key, ask, PASSWORD]
        told += [await mailed(platform, "f@example.org"), await mailed(platform, "new@example.org")]
        for secret in told:
            assert secret.encode() not in raw
            assert secret.partition("_")[2].encode() not in raw or not secret.partition("_")[2]
        assert b"f@example.org" in raw, "the file was really read"


async def test_what_a_guest_bought_becomes_the_fans_only_with_the_proven_address(tmp_path):
    async with opened(tmp_path) as platform:
        fans = platform.people.fans
        mine = await fans.start_guest_session("me@example.org", "en")
        other = await fans.start_guest_session("somebody@example.org", "en")
        phone, stranger = "place:evt_1:0.1.7.5", "place:evt_2:0.1.7.5"
        await platform.ledger.messages.put_contact(Contact(phone, "Me@example.org"), platform.clock())
        await platform.ledger.messages.put_contact(Contact(stranger, "you@example.org"), platform.clock())
        for guest in (mine, other):
            ask = await fans.send_sign_in_link("me@example.org", "192.0.2.1", "en")
            session = await platform.people.sessions.find(guest.secret)
            made = await fans.redeem_link(await mailed(platform, "me@example.org"), ask, replaces=session)
        assert set(await fans.ids_of(made.session.subject)) == {made.session.subject, mine.session.subject, phone}


async def test_members_give_only_what_they_have(tmp_path):
    async with opened(tmp_path) as platform:
        team = platform.people.team
        owner, manager = await member(platform, Role.OWNER), await member(platform, Role.MANAGER)
        for role in Role:
            with pytest.raises(NotAllowed):
                await team.invite(actor(manager), f"{role}@example.org", role, "en")
        with pytest.raises(NotAllowed):
            await team.make_key(actor(manager), "more", ["team:write"])
        with pytest.raises(InvalidInput):
            await team.make_key(actor(owner), "odd", ["everything"])
        with pytest.raises(LastOwner):
            await team.remove(actor(owner), owner.id)
        changed = await team.change_role(actor(owner), manager.id, Role.OWNER)
        assert changed.role is Role.OWNER
        assert await platform.people.sessions.find(manager.session) is None


async def test_an_invitation_makes_a_member_once_and_a_reset_a_new_password(tmp_path):
    async with opened(tmp_path) as platform:
        team, owner = platform.people.team, await member(platform, Role.OWNER)
        await team.invite(actor(owner), "door@example.org", Role.DOOR, "en")
        link = await mailed(platform, "door@example.org")
        with pytest.raises(InvalidInput):
            await team.accept(link, "Door", "short")
        tries = await asyncio.gather(
            *(team.accept(link, f"Door {n}", PASSWORD) for n in range(50)), return_exceptions=True
        )
        (staff,) = [one for one in tries if not isinstance(one, Exception)]
        assert (staff.role, staff.organiser_id) == (Role.DOOR, ORGANISER)
        await team.reset(actor(owner), staff.id, "en")
        link = await mailed(platform, "door@example.org")
        again = await team.accept(link, "ignored", "quite another sentence")
        assert again.id == staff.id
        signed = await platform.people.staff.sign_in(staff.email, "quite another sentence", "", "192.0.2.1")
        assert signed.session.stage is Stage.ENROL


COMPOSED, DECOMPOSED = "un caf\u00e9 \u00e0 Orl\u00e9ans", "un cafe\u0301 a\u0300 Orle\u0301ans"
LIGATURE = "of\ufb01ce \u2075 o\u2019clock at the Stra\u00dfe"


async def test_staff_sign_in_with_the_password_they_set_however_it_is_typed(tmp_path):
    """Set composed, typed decomposed (another keyboard), with spaces around, full width; and the other way round."""
    async with opened(tmp_path) as platform:
        team, accounts, owner = platform.people.team, platform.people.staff, await member(platform, Role.OWNER)
        same = [COMPOSED, DECOMPOSED, f"  {COMPOSED}", f"{DECOMPOSED}\u00a0"]
        for number, (chosen, typed) in enumerate(
            [(a, b) for a in same for b in same] + [(LIGATURE, LIGATURE), (LIGATURE, LIGATURE.replace("\ufb01", "fi"))]
        ):
            email = f"m{number}@example.org"
            await team.invite(actor(owner), email, Role.DOOR, "en")
            await team.accept(await mailed(platform, email), "Door", chosen)
            signed = await accounts.sign_in(email, typed, "", f"192.0.2.{number}")
            assert signed.session.stage is Stage.ENROL
            with pytest.raises(WrongCredentials):
                await accounts.sign_in(email, COMPOSED.lower(), "", f"192.0.2.{number}")
        changed = await accounts.change_password(signed.session, LIGATURE, DECOMPOSED)
        assert changed.session.subject == signed.session.subject
        assert await accounts.sign_in(email, COMPOSED, "", "192.0.2.200")


@pytest.mark.parametrize("hashed", [DECOMPOSED, f" {COMPOSED} ", f" {DECOMPOSED}", COMPOSED])
async def test_hashes_of_older_forms_keep_working_and_become_new_ones(tmp_path, hashed):
    async with opened(tmp_path) as platform:
        owner, passwords, book = await member(platform, Role.OWNER), platform.people.passwords, platform.people.book
        old = passwords._hasher.hash(hashed)  # as it was stored before passwords had one form
        assert await book.change_password(owner.id, old, owner.staff.password_hash, platform.clock())
        for typed in (hashed, COMPOSED):
            assert await platform.people.staff.sign_in(owner.staff.email, typed, "", "192.0.2.1")
        before = passwords.verifications
        await platform.people.staff.sign_in(owner.staff.email, COMPOSED, "", "192.0.2.1")
        assert passwords.verifications - before == 1, "the new hash is of today's form"


async def test_too_many_wrong_passwords_lock_an_account_for_a_while_whether_it_exists_or_not(tmp_path):
    """Counted, not timed: five verifications for each, then none at all until the window has passed."""
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as platform:
        owner, accounts, passwords = (
            await member(platform, Role.OWNER),
            platform.people.staff,
            platform.people.passwords,
        )
        for address in (owner.staff.email, "nobody@example.org", "not an address"):
            before = passwords.verifications
            for n in range(8):
                expected = WrongCredentials if n < 5 else TooManyTries
                with pytest.raises(expected) as told:
                    await accounts.sign_in(address, "wrong wrong wrong", "", f"198.51.100.{n}")
            assert passwords.verifications - before == 5, address
            assert told.value.retry_after_s > 0
        with pytest.raises(TooManyTries):
            await accounts.sign_in(owner.staff.email, PASSWORD, "", "198.51.100.9")
        clock.advance(120)
        assert (await accounts.sign_in(owner.staff.email, PASSWORD, "", "198.51.100.9")).session.stage is Stage.TOTP


async def test_right_passwords_never_lock_anybody_out(tmp_path):
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as platform:
        owner = await member(platform, Role.OWNER)
        for _ in range(40):
            await platform.people.staff.sign_in(owner.staff.email, PASSWORD, "", "192.0.2.1")


async def test_codes_are_limited_per_member_over_all_sessions(tmp_path):
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as platform:
        owner = await member(platform, Role.OWNER)
        wrong = {WrongCredentials: 0, TooManyTries: 0}
        for n in range(12):
            with pytest.raises(tuple(wrong)) as told:
                await platform.people.staff.sign_in(owner.staff.email, PASSWORD, "000000", f"198.51.100.{n}")
            wrong[type(told.value)] += 1
        assert wrong == {WrongCredentials: 5, TooManyTries: 7}


def test_a_sealed_text_opens_only_for_its_purpose(tmp_path):
    old, new = Vault([b"o" * 32]), Vault([b"n" * 32, b"o" * 32])
    sealed = old.seal("secret", "totp:1")
    assert new.open(sealed, "totp:1") == "secret"
    for text, purpose in ((sealed, "totp:2"), (sealed[:-2] + "AA", "totp:1"), ("", "totp:1"), ("é", "totp:1")):
        with pytest.raises(SealBroken):
            new.open(text, purpose)
    with pytest.raises(SealBroken):
        old.open(new.seal("x", "p"), "p")
    assert CHEAP.argon2_memory_kib < PeopleSettings().argon2_memory_kib
