"""The contract of the WalletBook port: one set of keys per organiser and wallet, each change noted with its editor."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from msgspec.structs import replace

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.tickets.model.wallets import Wallet, WalletKeys
from tests.contracts.ledger_contract import Bench

Check = Callable[[Bench], Coroutine[Any, Any, None]]


def three_keys(bench: Bench) -> tuple[WalletKeys, WalletKeys, WalletKeys]:
    """Two of an organiser, and one of another."""
    own = f"org_{bench.event}"
    apple = WalletKeys(own, Wallet.APPLE, "pass.org.example", "A1B2C3D4E5", 2_000, "sealed", bench.now_us)
    google = WalletKeys(own, Wallet.GOOGLE, "3388000000012345678", "a@example.org", 0, "too", bench.now_us)
    return apple, google, replace(apple, organiser_id=f"{own}_b", sealed="another's")


def by(keys: WalletKeys, act: str = "change_wallet") -> Change:
    return Change(Editor("stf_1", keys.organiser_id), act, "", keys.changed_at_us)


async def keys_are_the_newest_ones_of_their_own_organiser(bench: Bench) -> None:
    apple, google, other = three_keys(bench)
    for keys in (google, apple, other):
        await bench.one.wallets.put(keys, by(keys))
    newer = replace(
        apple, account="pass.org.newer", sealed="newer", expires_at_us=3_000, changed_at_us=bench.now_us + 1
    )
    await bench.two.wallets.put(newer, by(newer))
    assert await bench.one.wallets.keys_of(apple.organiser_id) == [newer, google]
    assert await bench.one.wallets.keys_of(other.organiser_id) == [other]
    assert await bench.one.wallets.keys_of("org_nobody") == []


async def keys_are_removed_once_and_the_removal_is_noted(bench: Bench) -> None:
    apple, google, other = three_keys(bench)
    for keys in (apple, google, other):
        await bench.one.wallets.put(keys, by(keys))
    gone = by(apple, "remove_wallet")
    removed = [await one.wallets.remove(apple.organiser_id, Wallet.APPLE, gone) for one in (bench.one, bench.two)]
    assert removed == [True, False]
    assert await bench.one.wallets.keys_of(apple.organiser_id) == [google]
    assert await bench.one.wallets.keys_of(other.organiser_id) == [other]
    noted = [one.act for one in await bench.one.organiser.changes(apple.organiser_id, "", 0, 10)]
    assert noted == ["remove_wallet", "change_wallet", "change_wallet"]


CHECKS: Final[tuple[Check, ...]] = (
    keys_are_the_newest_ones_of_their_own_organiser,
    keys_are_removed_once_and_the_removal_is_noted,
)
