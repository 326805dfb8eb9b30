"""What goes wrong in a simulated platform, by the seed's stream of faults; and what the bank does in its own time."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from frontrow.boxoffice.adapters.payments.simulated import Fault
from frontrow.simulation.ledger_server import StoreRefusal
from frontrow.simulation.network import LEDGER, MAIL, PROVIDER, REDIS, REPLICA, ROOM_AUDIT
from frontrow.simulation.processes import PlayedServer

if TYPE_CHECKING:
    from frontrow.simulation.world import World

FOLLOWS_EVERY_S: Final = 3
NAMES: Final = ("server1", "server2", "worker1", "worker2")
REFUND_STATUSES: Final = ("succeeded",) * 6 + ("pending", "pending", "failed")


class Faults:
    """Crashes, outages, forgetful stores, jumping clocks. A world with a rate of 0 has none."""

    def __init__(self, world: "World") -> None:
        self._world, self._rate = world, world.network.rate
        self.dice = random.Random(f"large faults {world.seed}")
        self._bank = random.Random(f"bank {world.seed}")
        self._disputes = random.Random(f"disputes {world.seed}")
        self._disputed: dict[str, int] = {}  # object whose dispute is open -> what the bank took back
        self._were_disputed: set[str] = set()
        self._untold: list[tuple[bytes, Mapping[str, str]]] = []  # notices about disputes that nobody took yet
        self._lags = False
        self.injected: Counter[str] = Counter()
        world.provider.script = self._provider_fault
        world.provider.refund_status = self._refund_status
        world.ledger.refuse = self._refusal

    def heal(self) -> None:
        """Nothing goes wrong from now on."""
        self._rate, self._lags, self._world.redis.is_full = 0.0, False, False
        self._world.provider.down = False
        self._world.provider.refund_status = lambda found, earlier: "succeeded"

    def note(self, what: str) -> None:
        """Count a large fault; it is a reached state too."""
        self.injected[what] += 1
        self._world.reached[what] += 1

    def _refusal(self) -> StoreRefusal:
        """Why the ledger rolls a transaction back: others changed the same rows, or keep a lock."""
        if self._rate <= 0 or self.dice.random() >= self._rate / 2:
            return StoreRefusal.NONE
        why = self.dice.choice((StoreRefusal.CLASH, StoreRefusal.UNIQUE, StoreRefusal.LOCKED))
        self.note(f"ledger {why}")
        return why

    def _provider_fault(self, operation: str, key: str, number: int) -> Fault | None:
        if self._rate <= 0 or self._bank.random() > self._rate:
            return None
        return self._bank.choice((Fault.ERROR_BEFORE, Fault.ERROR_AFTER, Fault.BUSY))

    def _refund_status(self, found: dict[str, Any], earlier: list[dict[str, Any]]) -> str:
        return self._bank.choice(REFUND_STATUSES) if self._rate else "succeeded"

    async def live(self) -> None:
        """Every few seconds something large goes wrong, for a while."""
        world, dice = self._world, self.dice
        while not world.is_over and self._rate:
            await asyncio.sleep(dice.choice((4, 8, 15)))
            kinds = (
                *(self._crash, self._crash, self._outage, self._cut, self._forget, self._jump),
                *(self._fail_over_ledger, self._fail_over_redis, self._fill_redis, self._lose_scripts, self._lag),
            )
            await dice.choice(kinds)()

    async def _crash(self) -> None:
        name = self.dice.choice(NAMES)
        self._world.crash(name)
        await asyncio.sleep(self.dice.choice((0.1, 2, 10)))
        if not self._world.is_over and name not in self._world.processes:
            self._world.start(name)

    async def _outage(self) -> None:
        """A store answers nobody for a while."""
        target = self.dice.choice((LEDGER, REDIS, PROVIDER, PROVIDER, MAIL, ROOM_AUDIT, REPLICA))
        self.note(f"{target} away")
        await self._away(target, (0.5, 3, 12))

    async def _cut(self) -> None:
        """One process does not reach one store."""
        pair = self.dice.choice(NAMES), self.dice.choice((LEDGER, REDIS, REDIS, PROVIDER))
        self._world.network.cut.add(pair)
        self.note("cut off")
        await asyncio.sleep(self.dice.choice((1, 5, 15)))
        self._world.network.cut.discard(pair)

    async def _forget(self) -> None:
        """Redis loses everything, or its last seconds, with or without anybody noticing."""
        how = self.dice.randrange(3)
        self.note(("redis lost all", "redis lost newest", "redis lost newest unnoticed")[how])
        if how == 0:
            self._world.redis.lose_everything()
        else:
            self._world.redis.keep()
            await asyncio.sleep(self.dice.choice((0.5, 2)))
            self._world.redis.lose_newest(noticed=how == 1)

    async def _jump(self) -> None:
        """The clock of a machine jumps: it was suspended, or set."""
        process = self._world.processes.get(self.dice.choice(NAMES))
        if process is not None:
            by_us = self.dice.choice((-20_000_000, -3_000_000, 2_000_000, 20_000_000))
            process.machine.skew_us += by_us
            self._world.laws.most_ahead_us += max(0, by_us)
            self.note("clock jumped")

    async def _fail_over_ledger(self) -> None:
        """The standby takes over. It has every commit that was answered, and others of which nobody heard."""
        self.note("ledger failed over")
        self._world.network.severed[LEDGER] += 1
        await self._away(LEDGER, (0.5, 4))

    async def _fail_over_redis(self) -> None:
        """A replica takes over that lacks the newest writes. Clients are told by errors, not by the store."""
        self.note("redis failed over")
        self._world.redis.keep()
        await asyncio.sleep(self.dice.choice((0.5, 2)))
        self._world.network.severed[REDIS] += 1
        await self._away(REDIS, (0.5, 4))
        self._world.redis.lose_newest(noticed=False)

    async def _away(self, target: str, how_long_s: tuple[float, ...]) -> None:
        self._world.network.away.add(target)
        await asyncio.sleep(self.dice.choice(how_long_s))
        self._world.network.away.discard(target)

    async def _fill_redis(self) -> None:
        """Redis has no memory left: it answers, frees and refuses whatever would need more."""
        self.note("redis out of memory")
        self._world.redis.is_full = True
        await asyncio.sleep(self.dice.choice((1, 5, 12)))
        self._world.redis.is_full = False

    async def _lose_scripts(self) -> None:
        """Redis forgets its scripts: the next call of each process takes one more way there and back."""
        self.note("redis lost its scripts")
        self._world.network.scripts_known.clear()

    async def _lag(self) -> None:
        """The replica follows nobody for a while."""
        self.note("replica lags")
        self._lags = True
        await asyncio.sleep(self.dice.choice((4, 12, 25)))
        self._lags = False

    async def replicate(self) -> None:
        """What the primary commits arrives at the replica a little later."""
        while not self._world.is_over:
            await self._follow_later()

    async def _follow_later(self) -> None:
        await asyncio.sleep(FOLLOWS_EVERY_S)
        if not self._lags:
            self._world.replica.follow()

    # the bank

    async def bank(self) -> None:
        """Fans answer their bank, refunds end, webhooks arrive: late, twice, in any order, or never."""
        world, dice = self._world, self._bank
        while not world.is_over:
            await asyncio.sleep(dice.choice((1, 3, 6)))
            for ref in list(world.provider.objects):
                if dice.random() < 0.4:
                    world.provider.finish_action(ref)
                    world.provider.finish_money(ref, failed=dice.random() < 0.1)
            for ref, refund in list(world.provider.refunds.items()):
                if refund["status"] == "pending" and dice.random() < 0.4:
                    world.provider.finish_refund(ref, dice.choice(("succeeded", "succeeded", "failed")))
                elif self._rate and refund["status"] == "succeeded" and dice.random() < 0.02:
                    world.provider.finish_refund(ref, "failed")
            await self._deliver()

    async def _deliver(self) -> None:
        world = self._world
        notices = list(world.provider.notices)
        for body, headers in self._bank.choices(notices, k=2) if notices else []:
            await world.ask("bank", "webhook", _delivering(body, headers))

    # disputes

    async def dispute(self) -> None:
        """In every second seed, banks take back what was paid, and decide some time later whose it is."""
        dice = self._disputes
        if dice.random() < 0.5:
            return
        while not self._world.is_over:
            await asyncio.sleep(dice.choice((8, 15, 30)))
            known = {row[0] for row in self._world.laws.rows("SELECT provider_ref FROM payments")}
            left = {
                ref: left
                for ref in self._world.provider.objects
                if ref in known and (left := self._left_minor(ref)) > 0
            }
            fresh = [ref for ref in left if ref not in self._were_disputed]
            if self._disputed and (not fresh or dice.random() < 0.4):
                self._decide_dispute(dice.choice(list(self._disputed)))
            elif fresh:
                self._open_dispute(ref := dice.choice(fresh), left[ref])
            await self.tell_disputes(dice.random)

    def _left_minor(self, ref: str) -> int:
        """What was taken and not given back."""
        provider = self._world.provider
        given: int = sum(
            one["amount"]
            for one in provider.refunds.values()
            if one["payment_intent"] == ref and one["status"] != "failed"
        )
        taken: int = provider.objects[ref]["amount_received"]
        return taken - given

    def _open_dispute(self, ref: str, amount_minor: int) -> None:
        self._disputed[ref] = amount_minor
        self._were_disputed.add(ref)
        self.note("dispute opened")
        self._world.provider.open_dispute(ref, amount_minor=amount_minor)
        self._untold.append(self._world.provider.notices[-1])

    def _decide_dispute(self, ref: str) -> None:
        status, amount_minor = self._disputes.choice(("won", "lost", "lost", "warning_closed")), self._disputed.pop(ref)
        self.note(f"dispute {status}")
        self._world.provider.close_dispute(ref, status, amount_minor=amount_minor)
        self._untold.append(self._world.provider.notices[-1])

    async def tell_disputes(self, dice: Callable[[], float] = lambda: 0.0) -> None:
        """Tell what nobody took yet, some of it now and the rest later: a provider repeats its notices for days."""
        for notice in [one for one in self._untold if dice() < 0.7]:
            if await self._world.ask("bank", "dispute", _delivering(*notice)) is not None:
                self._untold.remove(notice)

    def settle_bank(self) -> None:
        """The bank decides whatever it had not decided."""
        provider = self._world.provider
        for ref in list(provider.objects):
            provider.finish_action(ref)
            provider.finish_money(ref)
        for ref, refund in list(provider.refunds.items()):
            if refund["status"] == "pending":
                provider.finish_refund(ref, "succeeded")
        for ref in list(self._disputed):
            self._decide_dispute(ref)


async def _webhook(server: PlayedServer, body: bytes, headers: Mapping[str, str]) -> bool:
    return await server.office.checkout.handle_webhook(body, headers)


def _delivering(body: bytes, headers: Mapping[str, str]) -> Callable[[PlayedServer], Awaitable[Any]]:
    return lambda server: _webhook(server, body, headers)
