"""The contracts of ProviderNotes and PaymentAccountBook: a note is kept once, one account takes new payments."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from msgspec.structs import replace

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.payments.model.payment_accounts import AccountState, PaymentAccount
from frontrow.boxoffice.payments.ports import ProviderNote
from tests.contracts.ledger_contract import Bench

Check = Callable[[Bench], Coroutine[Any, Any, None]]
CALLERS: Final = 50


async def a_note_is_kept_once_whoever_brings_it(bench: Bench) -> None:
    note = ProviderNote(f"ref_{bench.event}", "notice:1", "hall", "PSP1", '{"code":"CAPTURE"}', bench.now_us)
    books = (bench.one.provider_notes, bench.two.provider_notes)
    kept = await asyncio.gather(*(books[n % 2].keep("adyen", note) for n in range(CALLERS)))
    assert kept.count(True) == 1
    assert not await books[1].keep("adyen", replace(note, body="{}"))
    assert (await books[0].notes_of("adyen", [note.ref, "nobody"])) == {note.ref: [note], "nobody": []}
    assert (await books[0].notes_of("other", [note.ref])) == {note.ref: []}


async def an_object_is_found_by_the_providers_name_for_it(bench: Bench) -> None:
    book, ref = bench.one.provider_notes, f"ref_{bench.event}"
    await book.keep("adyen", ProviderNote(ref, "answer", "", f"PSP_{bench.event}", "{}", bench.now_us))
    assert await bench.two.provider_notes.ref_of("adyen", f"PSP_{bench.event}") == ref
    assert await book.ref_of("other", f"PSP_{bench.event}") == ""
    assert await book.ref_of("adyen", "") == ""


async def objects_are_listed_newest_first_and_by_account(bench: Bench) -> None:
    book, hall = bench.one.provider_notes, f"hall_{bench.event}"
    refs = [f"{n}_{bench.event}" for n in range(5)]
    for n, ref in enumerate(refs):  # two of them in the same microsecond
        await book.keep("adyen", ProviderNote(ref, "made", hall, "", "{}", bench.now_us + n // 2))
        await book.keep("adyen", ProviderNote(ref, "answer", hall, "", "{}", bench.now_us + 9))
    seen: list[str] = []
    for _ in range(10):
        page = await book.newest("adyen", hall, bench.now_us, seen[-1] if seen else "", 2)
        seen += page
        if len(page) < 2:
            break
    assert seen == refs[::-1]
    assert await book.newest("adyen", hall, bench.now_us + 2, "", 9) == [refs[4]]
    assert await book.newest("adyen", "another", bench.now_us, "", 9) == []


def _account(bench: Bench, name: str) -> PaymentAccount:
    own = f"org_{bench.event}"
    return PaymentAccount(
        own, "adyen", f"{name}_{bench.event}", AccountState.ACTIVE, "", 250, bench.now_us, bench.now_us
    )


async def _put(bench: Bench, account: PaymentAccount) -> None:
    change = Change(Editor("operator", account.organiser_id), "change_payment_account", "", account.changed_at_us)
    await bench.one.payment_accounts.put(account, change)


async def _of(bench: Bench) -> list[PaymentAccount]:
    found = await bench.two.payment_accounts.all_accounts()
    return [one for one in found if one.organiser_id == f"org_{bench.event}"]


async def a_new_account_ends_the_one_before_and_both_are_kept(bench: Bench) -> None:
    first, second = _account(bench, "a"), replace(_account(bench, "b"), made_at_us=bench.now_us + 5)
    second = replace(second, changed_at_us=bench.now_us + 5)
    await _put(bench, first)
    await _put(bench, second)
    ended = replace(first, ended_at_us=bench.now_us + 5, changed_at_us=bench.now_us + 5)
    assert await _of(bench) == [ended, second]
    await _put(bench, replace(first, changed_at_us=bench.now_us + 9))  # back to the first
    assert [(one.account, bool(one.ended_at_us)) for one in await _of(bench)] == [
        (first.account, False),
        (second.account, True),
    ]
    noted = [one.act for one in await bench.one.organiser.changes(first.organiser_id, "", 0, 10)]
    assert noted == ["change_payment_account"] * 3


async def nobody_takes_over_the_account_of_another_organiser(bench: Bench) -> None:
    own = _account(bench, "a")
    await _put(bench, own)
    await _put(bench, replace(own, organiser_id="org_thief", fee_basis_points=0))
    assert await _of(bench) == [own]


CHECKS: Final[tuple[Check, ...]] = (
    a_note_is_kept_once_whoever_brings_it,
    an_object_is_found_by_the_providers_name_for_it,
    objects_are_listed_newest_first_and_by_account,
    a_new_account_ends_the_one_before_and_both_are_kept,
    nobody_takes_over_the_account_of_another_organiser,
)
