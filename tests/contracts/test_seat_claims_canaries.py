"""Canaries: claim stores that are wrong in one way each; the contract must catch every one of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
import pytest

from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.holds.model.claims import BestClaim, ClaimedSeats, ClaimRefused, SeatClaim, TakenSeat
from tests.contracts import seat_claims as contract
from tests.contracts.seat_claims import EVENT, NOW, Contract, seats_of, small_plan


class ChecksThenActs(MemoryClaims):
    """Awaits between looking and writing."""

    async def claim(self, wish: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        taken = await self.states(wish.event_id, now_us, wish.seats)
        await asyncio.sleep(0)
        others = tuple(seat for seat in taken.values() if seat.booking_id != wish.booking_id)
        if others:
            return ClaimRefused(others)
        self._write(self._events[EVENT], wish.seats, wish.fan, wish.booking_id, now_us, wish.expires_at_us)
        return ClaimedSeats(wish.seats)


class TakesWhatItCanGet(MemoryClaims):
    """Claims the free ones of a refused group."""

    async def claim(self, wish: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        answer = await super().claim(wish, now_us)
        if isinstance(answer, ClaimRefused):
            taken = {seat.seat for seat in answer.taken}
            free = [seat for seat in wish.seats if seat not in taken]
            self._write(self._events[EVENT], free, wish.fan, wish.booking_id, now_us, wish.expires_at_us)
        return answer


class ShowsHalfAGroup(MemoryClaims):
    """Claims seat by seat, visibly, and undoes on failure."""

    async def claim(self, wish: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        won: list[int] = []
        for seat in wish.seats:
            one = SeatClaim(wish.event_id, (seat,), wish.fan, wish.booking_id, wish.expires_at_us)
            answer = await super().claim(one, now_us)
            if isinstance(answer, ClaimRefused):
                await asyncio.sleep(0.001)
                await self.release(wish.event_id, won, wish.booking_id)
                return answer
            won.append(seat)
        return ClaimedSeats(wish.seats)


class ReleasesForAnybody(MemoryClaims):
    async def release(self, event_id: str, seats: Sequence[int], booking_id: str) -> int:
        taken = self._events[event_id].taken
        return sum(taken.pop(seat, None) is not None for seat in seats)


class EndsAMicrosecondLate(MemoryClaims):
    async def claim(self, wish: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        return await super().claim(wish, now_us - 1)


class EndsAMicrosecondEarly(MemoryClaims):
    async def claim(self, wish: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        return await super().claim(wish, now_us + 1)


class UnsellsOnRepeat(MemoryClaims):
    async def claim(self, wish: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        for seat in wish.seats:
            was = self._events[EVENT].taken.get(seat)
            if was is not None and was.booking_id == wish.booking_id:
                del self._events[EVENT].taken[seat]
        return await super().claim(wish, now_us)


class ExtendsForAnybody(MemoryClaims):
    """Moves the end of a claim for whoever asks, and says that it did."""

    async def claim(self, wish: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        taken = self._events[EVENT].taken
        for seat in wish.seats:
            if seat in taken:
                taken[seat] = msgspec.structs.replace(taken[seat], expires_at_us=wish.expires_at_us)
        if all(seat in taken for seat in wish.seats):
            return ClaimedSeats(wish.seats)
        return await super().claim(wish, now_us)


class NeverExtends(MemoryClaims):
    """Leaves the end of a claim where it is when its owner claims again."""

    async def claim(self, wish: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        taken = self._events[EVENT].taken
        own = [seat for seat in wish.seats if seat in taken and taken[seat].booking_id == wish.booking_id]
        return ClaimedSeats(wish.seats) if own else await super().claim(wish, now_us)


class ChoosesOutsideTheAtomicStep(MemoryClaims):
    """Looks for the best seats first and claims them afterwards."""

    async def claim_best(self, wish: BestClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        answer = await super().claim_best(wish, now_us)
        if isinstance(answer, ClaimedSeats):
            await self.release(wish.event_id, answer.seats, wish.booking_id)
            await asyncio.sleep(0)
            return await self.claim(
                SeatClaim(wish.event_id, answer.seats, wish.fan, wish.booking_id, wish.expires_at_us), now_us
            )
        return answer


class ServesWhileBeingFilled(MemoryClaims):
    async def rebuild(self, event_id: str, read: Callable[[], AsyncIterator[TakenSeat]], now_us: int) -> bool:
        fresh = {seat.seat: seat async for seat in read()}
        event = self._events[event_id]
        event.taken, event.filled = fresh, True
        return True


class KeepsGhostsInARebuild(MemoryClaims):
    async def rebuild(self, event_id: str, read: Callable[[], AsyncIterator[TakenSeat]], now_us: int) -> bool:
        ghosts = self._events[event_id].taken
        done = await super().rebuild(event_id, read, now_us)
        self._events[event_id].taken |= {
            seat: was for seat, was in ghosts.items() if seat not in self._events[event_id].taken
        }
        return done


CANARIES: list[tuple[type[MemoryClaims], Contract]] = [
    (ChecksThenActs, contract.of_64_callers_for_one_seat_exactly_one_wins),
    (ChecksThenActs, contract.overlapping_groups_never_deadlock_and_never_share),
    (TakesWhatItCanGet, contract.a_claimed_seat_is_refused_to_everybody_else_with_its_name),
    (TakesWhatItCanGet, contract.a_group_across_sections_is_all_or_nothing),
    (ShowsHalfAGroup, contract.half_a_group_is_never_seen),
    (ReleasesForAnybody, contract.only_the_owner_releases),
    (EndsAMicrosecondLate, contract.a_claim_ends_exactly_at_its_expiry),
    (EndsAMicrosecondEarly, contract.a_claim_ends_exactly_at_its_expiry),
    (UnsellsOnRepeat, contract.a_sold_seat_never_ends_and_a_late_repeat_does_not_unsell_it),
    (ExtendsForAnybody, contract.a_hold_is_extended_by_its_owner_only),
    (NeverExtends, contract.a_hold_is_extended_by_its_owner_only),
    (ChoosesOutsideTheAtomicStep, contract.a_crowd_for_the_best_two_does_not_collide),
    (ServesWhileBeingFilled, contract.while_it_is_being_filled_the_store_refuses),
    (KeepsGhostsInARebuild, contract.a_rebuild_replaces_everything),
]


@pytest.mark.parametrize(("broken", "catching"), CANARIES, ids=lambda each: each.__name__)
async def test_the_contract_catches(broken: type[MemoryClaims], catching: Contract) -> None:
    """B3, B4, F1: each of the contract's promises can be broken, and is then noticed."""
    claims = broken()
    claims.learn(EVENT, small_plan())
    assert await claims.rebuild(EVENT, seats_of, NOW)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await catching(claims, claims)
