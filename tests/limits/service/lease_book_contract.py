"""What every book of leases does."""

import asyncio
from collections.abc import Callable

import pytest

from frontrow.limits.quota import Decision
from frontrow.limits_service.leases import Lease, LeaseBook, UnknownLease

LEASE = Lease(
    (("api", ""), ("all", "vip")), ("user:42", b"4:user2:42"), 7, 1_700_000_000_000_000,
    Decision(True, "api", 10, 3, 5_000_000, 0), "",
)  # fmt: skip


class LeaseBookContract:
    """Run with a fixture `book`, and `pass_time(seconds)` for its time."""

    pass_time: Callable[[float], object]

    async def test_a_lease_is_handed_out_as_it_was_put(self, book: LeaseBook) -> None:
        assert await book.take(await book.put(LEASE, 60.0)) == LEASE

    async def test_a_lease_is_handed_out_once(self, book: LeaseBook) -> None:
        lease_id = await book.put(LEASE, 60.0)
        taken = await asyncio.gather(*(book.take(lease_id) for _ in range(50)), return_exceptions=True)
        assert sum(isinstance(each, Lease) for each in taken) == 1
        assert sum(isinstance(each, UnknownLease) for each in taken) == 49

    async def test_leases_are_told_apart(self, book: LeaseBook) -> None:
        assert len({await book.put(LEASE, 60.0) for _ in range(20)}) == 20

    async def test_an_unknown_lease_is_told(self, book: LeaseBook) -> None:
        with pytest.raises(UnknownLease):
            await book.take("lse_nothing")
