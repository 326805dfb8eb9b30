"""The contract of the PeopleBook port as plain checks over a Bench (two ledgers on one store)."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

from frontrow.boxoffice.people.model.people import (
    AlreadyMember,
    ApiKey,
    Fan,
    Invitation,
    LastOwner,
    Organiser,
    PersonNotFound,
    Session,
    Staff,
    Stage,
    SubjectKind,
)
from frontrow.boxoffice.people.model.roles import Role
from tests.contracts.ledger_contract import CALLERS, Bench, outcomes, refusal

Check = Callable[[Bench], Coroutine[Any, Any, None]]
HOUR_US = 3600 * 1_000_000
_numbers = itertools.count(1)


async def team(bench: Bench, *roles: Role) -> list[Staff]:
    """A new organiser with members of these roles."""
    number = next(_numbers)
    organiser = f"org_{number}"
    assert await bench.one.people.put_organiser(Organiser(organiser, "Hall", bench.now_us))
    made = [
        Staff(
            f"stf_{number}_{n}", organiser, f"s{number}.{n}@example.org", "S", role, "hash", created_at_us=bench.now_us
        )
        for n, role in enumerate(roles)
    ]
    for one in made:
        assert await bench.one.people.add_staff(one)
    return made


def session(bench: Bench, subject: str, kind: SubjectKind = SubjectKind.STAFF) -> Session:
    number = next(_numbers)
    return Session(
        f"ses_{number}",
        kind,
        subject,
        Stage.FULL,
        bench.now_us,
        bench.now_us,
        bench.now_us + 4 * HOUR_US,
        HOUR_US,
        "ua",
    )


def invitation(bench: Bench, organiser: str, email: str, staff_id: str = "") -> Invitation:
    made_at = bench.now_us
    return Invitation(
        f"inv_{next(_numbers)}", organiser, email, Role.DOOR, "stf_x", made_at, made_at + HOUR_US, staff_id
    )


async def an_address_has_one_account(bench: Bench) -> None:
    (owner,) = await team(bench, Role.OWNER)
    again = Staff("stf_again", owner.organiser_id, owner.email, "S", Role.DOOR, "hash", created_at_us=bench.now_us)
    assert not await bench.two.people.add_staff(again)
    assert await bench.two.people.staff_by_email(owner.email) == owner == await bench.two.people.staff(owner.id)
    assert await bench.two.people.staff_of(owner.organiser_id) == [owner]
    assert not await bench.one.people.put_organiser(Organiser(owner.organiser_id, "Other", bench.now_us))
    assert Organiser(owner.organiser_id, "Hall", bench.now_us) in await bench.two.people.organisers(limit=1_000)


async def an_organiser_never_loses_its_last_owner(bench: Bench) -> None:
    """Two owners demote and remove each other, from two servers, all at once: one owner stays."""
    owners = await team(bench, *[Role.OWNER] * CALLERS)
    organiser = owners[0].organiser_id
    calls: list[Any] = [
        bench.either(n).people.set_role(organiser, one.id, Role.DOOR, "x", bench.now_us)
        if n % 3
        else bench.either(n).people.remove_staff(organiser, one.id, "x", bench.now_us)
        for n, one in enumerate(owners)
    ]
    done, refused = await outcomes(calls)
    assert (len(done), len(refused)) == (CALLERS - 1, 1)
    assert isinstance(refused[0], LastOwner)
    left = [one for one in await bench.one.people.staff_of(organiser) if one.role is Role.OWNER]
    assert len(left) == 1


async def a_member_is_changed_by_its_own_organiser_only(bench: Bench) -> None:
    (mine, gatekeeper), (other,) = await team(bench, Role.OWNER, Role.DOOR), await team(bench, Role.OWNER)
    for call in (
        bench.one.people.set_role(other.organiser_id, gatekeeper.id, Role.OWNER, other.id, bench.now_us),
        bench.one.people.remove_staff(other.organiser_id, gatekeeper.id, other.id, bench.now_us),
    ):
        await refusal(call, PersonNotFound)
    changed = await bench.two.people.set_role(mine.organiser_id, gatekeeper.id, Role.MANAGER, mine.id, bench.now_us)
    assert changed.role is Role.MANAGER


async def a_session_shows_the_role_of_now_and_ends_with_its_member(bench: Bench) -> None:
    owner, gatekeeper = await team(bench, Role.OWNER, Role.DOOR)
    await bench.one.people.start_session(session(bench, owner.id), f"h {owner.id}")
    await bench.one.people.start_session(session(bench, gatekeeper.id), f"h {gatekeeper.id}")
    found = await bench.two.people.session(f"h {owner.id}")
    assert found is not None
    assert (found.role, found.organiser_id, found.subject) == (Role.OWNER, owner.organiser_id, owner.id)
    await bench.one.people.set_role(owner.organiser_id, gatekeeper.id, Role.MANAGER, owner.id, bench.now_us)
    assert await bench.two.people.session(f"h {gatekeeper.id}") is None, "a changed role ends the member's sessions"
    await bench.one.people.start_session(session(bench, gatekeeper.id), f"h2 {gatekeeper.id}")
    await bench.one.people.remove_staff(owner.organiser_id, gatekeeper.id, owner.id, bench.now_us)
    assert await bench.two.people.session(f"h2 {gatekeeper.id}") is None
    await bench.one.people.start_session(session(bench, gatekeeper.id), f"h3 {gatekeeper.id}")
    assert await bench.two.people.session(f"h3 {gatekeeper.id}") is None, "not even one that was being made meanwhile"


async def a_session_is_replaced_in_one_moment(bench: Bench) -> None:
    (owner,) = await team(bench, Role.OWNER)
    old, new = session(bench, owner.id), session(bench, owner.id)
    await bench.one.people.start_session(old, f"old {owner.id}")
    await bench.one.people.start_session(new, f"new {owner.id}", replaces=old)
    assert await bench.two.people.session(f"old {owner.id}") is None
    assert [one.id for one in await bench.two.people.sessions_of(owner.id, bench.now_us)] == [new.id]
    await bench.one.people.touch_session(new.id, bench.now_us + HOUR_US - 1)
    assert await bench.two.people.sessions_of(owner.id, bench.now_us + 2 * HOUR_US - 2) != []
    assert await bench.two.people.sessions_of(owner.id, bench.now_us + 2 * HOUR_US - 1) == [], "idle for an hour"
    assert not await bench.one.people.end_session("somebody else", new.id)
    assert await bench.one.people.end_session(owner.id, new.id)
    assert await bench.two.people.session(f"new {owner.id}") is None
    await bench.one.people.purge_people(bench.now_us + 5 * HOUR_US)


async def a_code_is_good_once(bench: Bench) -> None:
    """Of many callers with one TOTP step, or one recovery code, exactly one wins; older steps are spent too."""
    (owner,) = await team(bench, Role.OWNER)
    codes = [f"c{n}" for n in range(10)]
    assert await bench.one.people.enrol_totp(owner.id, "sealed", "", 5, codes, bench.now_us)
    assert not await bench.two.people.enrol_totp(owner.id, "other", "", 5, codes, bench.now_us), (
        "another was set meanwhile"
    )
    assert sum(await asyncio.gather(*(bench.either(n).people.use_totp_step(owner.id, 7) for n in range(CALLERS)))) == 1
    assert not await bench.one.people.use_totp_step(owner.id, 6)
    assert await bench.one.people.use_totp_step(owner.id, 8)
    tries = (bench.either(n).people.use_recovery_code(owner.id, "c3") for n in range(CALLERS))
    assert sum(await asyncio.gather(*tries)) == 1
    assert not await bench.one.people.use_recovery_code("stf_other", "c4")
    left = [code for code in codes if await bench.two.people.use_recovery_code(owner.id, code)]
    assert left == [code for code in codes if code != "c3"]


async def of_two_password_changes_one_wins(bench: Bench) -> None:
    (owner,) = await team(bench, Role.OWNER)
    calls = (bench.either(n).people.change_password(owner.id, f"new {n}", "hash", bench.now_us) for n in range(CALLERS))
    assert sum(await asyncio.gather(*calls)) == 1


async def an_invitation_is_accepted_once(bench: Bench) -> None:
    (owner,) = await team(bench, Role.OWNER)
    one = invitation(bench, owner.organiser_id, f"new.{owner.id}@example.org")
    await bench.one.people.add_invitation(one, f"i {one.id}")
    assert await bench.two.people.open_invitation(f"i {one.id}", bench.now_us) == one
    assert await bench.two.people.open_invitation(f"i {one.id}", one.ends_at_us) is None, "it ends at that instant"
    made = [Staff(f"stf_{one.id}_{n}", "", "", "New", Role.OWNER, f"h{n}") for n in range(CALLERS)]
    assert await bench.one.people.accept(f"i {one.id}", made[0], one.ends_at_us) is None
    done = await asyncio.gather(
        *(bench.either(n).people.accept(f"i {one.id}", made[n], bench.now_us) for n in range(CALLERS))
    )
    (won,) = [staff for staff in done if staff is not None]
    assert (won.role, won.email, won.organiser_id) == (Role.DOOR, one.email, owner.organiser_id), "as invited"
    again = invitation(bench, owner.organiser_id, one.email)
    await bench.one.people.add_invitation(again, f"i {again.id}")
    await refusal(bench.one.people.accept(f"i {again.id}", made[1], bench.now_us), AlreadyMember)
    assert await bench.two.people.open_invitation(f"i {again.id}", bench.now_us) == again, "a refusal uses nothing up"
    assert not await bench.one.people.drop_invitation("org_other", again.id)
    assert await bench.one.people.invitations_of(owner.organiser_id, bench.now_us) == [again]
    assert await bench.one.people.drop_invitation(owner.organiser_id, again.id)
    assert await bench.one.people.accept(f"i {again.id}", made[2], bench.now_us) is None


async def a_reset_gives_a_new_password_and_ends_everything_old(bench: Bench) -> None:
    (owner,) = await team(bench, Role.OWNER)
    await bench.one.people.enrol_totp(owner.id, "sealed", "", 5, ["c"], bench.now_us)
    await bench.one.people.start_session(session(bench, owner.id), f"r {owner.id}")
    reset = invitation(bench, owner.organiser_id, owner.email, owner.id)
    await bench.one.people.add_invitation(reset, f"i {reset.id}")
    done = await bench.two.people.accept(
        f"i {reset.id}", Staff("stf_no", "", "", "", Role.DOOR, "new hash"), bench.now_us
    )
    assert done is not None
    assert (done.id, done.role, done.password_hash, done.totp_sealed) == (owner.id, Role.OWNER, "new hash", "")
    assert await bench.two.people.session(f"r {owner.id}") is None
    assert not await bench.two.people.use_recovery_code(owner.id, "c")


async def an_api_key_can_do_what_its_maker_still_can(bench: Bench) -> None:
    owner, maker = await team(bench, Role.OWNER, Role.OWNER)
    organiser = owner.organiser_id
    key = ApiKey(f"key_{maker.id}", organiser, "till", ("events:write", "door:scan"), maker.id, bench.now_us)
    await bench.one.people.add_api_key(key, f"k {key.id}")
    found = await bench.two.people.api_key(f"k {key.id}")
    assert found is not None
    assert found.permissions(bench.now_us) == {"events:write", "door:scan"}
    await bench.one.people.set_role(organiser, maker.id, Role.DOOR, owner.id, bench.now_us)
    (found,) = await bench.two.people.api_keys_of(organiser)
    assert found.permissions(bench.now_us) == {"door:scan"}
    await bench.one.people.touch_api_key(key.id, bench.now_us + 1)
    await bench.one.people.remove_staff(organiser, maker.id, owner.id, bench.now_us)
    found = await bench.two.people.api_key(f"k {key.id}")
    assert found is not None
    assert (found.permissions(bench.now_us), found.used_at_us) == (frozenset(), bench.now_us + 1)
    assert not await bench.one.people.drop_api_key("org_other", key.id, owner.id, bench.now_us)
    assert await bench.one.people.drop_api_key(organiser, key.id, owner.id, bench.now_us)
    assert await bench.two.people.api_key(f"k {key.id}") is None


async def a_magic_link_is_used_once_in_time_and_in_its_browser(bench: Bench) -> None:
    email = f"link{next(_numbers)}@example.org"
    await bench.one.people.add_magic_link(f"l {email}", "mine", email, bench.now_us, bench.now_us + HOUR_US)
    assert await bench.two.people.use_magic_link(f"l {email}", "another", bench.now_us) == ""
    assert await bench.two.people.use_magic_link(f"l {email}", "mine", bench.now_us + HOUR_US) == ""
    assert await bench.two.people.open_magic_link(f"l {email}", bench.now_us + HOUR_US - 1)
    won = await asyncio.gather(
        *(bench.either(n).people.use_magic_link(f"l {email}", "mine", bench.now_us) for n in range(CALLERS))
    )
    assert sorted(filter(None, won)) == [email]
    assert not await bench.two.people.open_magic_link(f"l {email}", bench.now_us)


async def an_address_is_one_fan_however_many_prove_it_at_once(bench: Bench) -> None:
    number = next(_numbers)
    email = f"fan{number}@example.org"
    wishes = [Fan(f"fan_{number}_{n}", email, bench.now_us) for n in range(CALLERS)]
    found = await asyncio.gather(*(bench.either(n).people.fan_of_address(wishes[n]) for n in range(CALLERS)))
    assert len({fan.id for fan in found}) == 1
    assert await bench.one.people.fan(found[0].id) == found[0]
    assert await bench.one.people.add_fan(Fan(f"fan_g{number}", "", bench.now_us)), "guests have no proven address"
    assert await bench.one.people.add_fan(Fan(f"fan_h{number}", "", bench.now_us))


async def somebody_erased_is_forgotten_and_the_money_is_not(bench: Bench) -> None:
    from frontrow.boxoffice.messages.model.messages import Contact, InAppMessage

    number = next(_numbers)
    fan = Fan(f"fan_{number}", f"e{number}@example.org", bench.now_us)
    other = Fan(f"fan_o{number}", f"o{number}@example.org", bench.now_us)
    guest, stranger = f"place:{bench.event}:0.1.{number}.9", f"place:evt_other:0.1.{number}.9"
    await bench.one.people.fan_of_address(fan)
    await bench.one.people.fan_of_address(other)
    hold = await bench.paid(1, 2, fan=guest, amount_minor=500, currency="EUR")
    await bench.one.confirm(hold.booking_id, hold.fence, bench.now_us)
    for name in (fan.id, guest):
        await bench.one.messages.put_contact(Contact(name, fan.email, name="Ada Lovelace"), bench.now_us)
        await bench.one.messages.put_in_app([InAppMessage(f"m {name}", name, "S", "B", bench.now_us)], bench.now_us)
    await bench.one.people.start_session(session(bench, fan.id, SubjectKind.FAN), f"f {fan.id}")
    for name in (stranger, other.id):
        await bench.one.messages.put_contact(Contact(name, other.email, name="Eve Lovelace"), bench.now_us)
        await bench.one.messages.put_in_app([InAppMessage(f"m {name}", name, "S", "B", bench.now_us)], bench.now_us)
    assert [one.id for one in await bench.two.organiser.bookings_by_name(bench.event, ["vela"], 0, 10)] == [
        hold.booking_id
    ]
    (bought,) = await bench.two.people.purchases_of_address(fan.email)
    assert (bought.id, bought.amount_minor) == (hold.booking_id, 500)
    assert await bench.one.people.erase_fan(fan.id, bench.now_us)
    assert not await bench.two.people.erase_fan(fan.id, bench.now_us), "once"
    assert await bench.two.people.session(f"f {fan.id}") is None
    for name in (fan.id, guest):
        assert await bench.two.messages.contact(name) is None
        assert await bench.two.messages.in_app(name) == []
    for name in (stranger, other.id):
        kept = await bench.two.messages.contact(name)
        assert kept is not None
        assert (kept.email, kept.name) == (other.email, "Eve Lovelace")
        assert len(await bench.two.messages.in_app(name)) == 1
    assert await bench.two.people.purchases_of_address(fan.email) == []
    assert await bench.two.organiser.bookings_by_name(bench.event, ["lovelace"], 0, 10) == []
    left = await bench.two.people.fan(fan.id)
    assert left is not None
    assert (left.email, left.erased_at_us) == ("", bench.now_us)
    assert [one.amount_minor for one in await bench.two.people.purchases_of([guest])] == [500]
    assert (
        await bench.two.people.fan_of_address(Fan(f"fan_n{number}", fan.email, bench.now_us))
    ).id == f"fan_n{number}"


async def an_address_brings_what_was_bought_with_it_and_nothing_else(bench: Bench) -> None:
    from frontrow.boxoffice.messages.model.messages import Contact

    number = next(_numbers)
    ada = Fan(f"fan_a{number}", f"ada{number}@example.org", bench.now_us)
    bob = Fan(f"fan_b{number}", f"bob{number}@example.org", bench.now_us)
    await bench.one.people.fan_of_address(ada)
    await bench.one.people.fan_of_address(bob)
    phone, guest = f"place:{bench.event}:0.1.{number}.5", Fan(f"fan_g{number}", "", bench.now_us)
    await bench.one.people.add_fan(guest)
    holds = {}
    for seat, name in enumerate((phone, guest.id, bob.id), 10):
        hold = await bench.paid(seat, fan=name, amount_minor=500, currency="EUR")
        await bench.one.confirm(hold.booking_id, hold.fence, bench.now_us)
        holds[name] = hold.booking_id
    await bench.one.messages.put_contact(Contact(phone, f"Ada{number}@EXAMPLE.org"), bench.now_us)
    await bench.one.messages.put_contact(Contact(guest.id, ada.email), bench.now_us)
    await bench.one.messages.put_contact(Contact(bob.id, ada.email), bench.now_us)
    assert {one.id for one in await bench.two.people.purchases_of_address(ada.email)} == {holds[phone], holds[guest.id]}
    assert set(await bench.two.people.names_of_address(ada.email)) == {phone, guest.id}
    assert await bench.two.people.is_reached_at(phone, ada.email)
    assert not await bench.two.people.is_reached_at(bob.id, ada.email), "an account of its own is nobody else's"
    assert not await bench.two.people.is_reached_at(phone, bob.email)
    await bench.one.messages.put_contact(Contact(phone, bob.email), bench.now_us)
    assert [one.id for one in await bench.two.people.purchases_of_address(ada.email)] == [holds[guest.id]], "it follows"
    assert [one.id for one in await bench.two.people.purchases_of_address(bob.email)] == [holds[phone]]
    assert await bench.two.people.purchases_of_address("") == [] == await bench.two.people.names_of_address("")
    assert not await bench.two.people.is_reached_at(phone, "")


CHECKS: list[Check] = [
    an_address_brings_what_was_bought_with_it_and_nothing_else,
    an_address_has_one_account,
    an_organiser_never_loses_its_last_owner,
    a_member_is_changed_by_its_own_organiser_only,
    a_session_shows_the_role_of_now_and_ends_with_its_member,
    a_session_is_replaced_in_one_moment,
    a_code_is_good_once,
    of_two_password_changes_one_wins,
    an_invitation_is_accepted_once,
    a_reset_gives_a_new_password_and_ends_everything_old,
    an_api_key_can_do_what_its_maker_still_can,
    a_magic_link_is_used_once_in_time_and_in_its_browser,
    an_address_is_one_fan_however_many_prove_it_at_once,
    somebody_erased_is_forgotten_and_the_money_is_not,
]
