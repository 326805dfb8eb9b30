"""The processes of a simulated platform: servers and workers, built by the platform's own wiring over the network.

A process has its own ledger client, caches, limits, clock and services. What it shares with others it reaches over the
network. When it crashes, all of that is gone, and another process with the same name starts from nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontrow.app.box_office_wiring import Adapters, make_box_office
from frontrow.app.job_wiring import ALL_GROUPS
from frontrow.boxoffice.adapters.channels.in_app import InAppChannel
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.checkout.reconciliation import Reconciler
from frontrow.boxoffice.checkout.visit_keeper import VisitKeeper
from frontrow.boxoffice.events.event_editing import OrganiserEvents
from frontrow.boxoffice.events.status_updates import EventStatusKeeper
from frontrow.boxoffice.facts.fact_consumers import FactConsumer
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.facts.outbox_relay import OutboxRelay
from frontrow.boxoffice.facts.ports import PlannedWrite
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.expiry import LedgerClock, Sweeper
from frontrow.boxoffice.holds.held_seats import HeldSeats
from frontrow.boxoffice.jobs.sales_follower import FollowedSeats, SalesFollower
from frontrow.boxoffice.jobs.waitlist_jobs import SEAT_FACTS, WAITLIST_GROUP
from frontrow.boxoffice.messages.mail_links import MailLinks
from frontrow.boxoffice.messages.model.messages import Message, Outcome
from frontrow.boxoffice.messages.notifications import MESSAGE_FACTS, Notifier
from frontrow.boxoffice.messages.ports.channels import Channel, NoteMessage
from frontrow.boxoffice.organiser.reseating import Reseater
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.refunds.event_cancellation import EventCancellations
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.boxoffice.refunds.ticket_returns import TicketReturns
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.boxoffice.tickets.wallet_passes import WalletVault
from frontrow.boxoffice.waitlist.offers import OfferWorker
from frontrow.core.errors import Unavailable
from frontrow.settings.platform import PlatformSettings
from frontrow.settings.server import ServerSettings
from frontrow.shared.ids import Ids
from frontrow.shared.vault import Vault
from frontrow.simulation.ledger_server import RemoteLedgerStore, RemoteReplica, ReplicaServer, SharedLedger
from frontrow.simulation.loop import BEGIN_US, SeededLoop
from frontrow.simulation.network import (
    MAIL,
    ROOM_AUDIT,
    Lost,
    Network,
    RedisServer,
    RemoteBus,
    RemoteClaims,
    RemoteObject,
    remote_provider,
    remote_rooms,
    shared_limiter,
)
from frontrow.simulation.scene import Scene
from frontrow.waitingroom.credentials import passes
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, EntranceRules
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.platform.visits import RoomVisits

KEYS: Final = TicketKeys(b"t" * 32)
ISSUER: Final = Issuer(KEYS)
SETTINGS: Final = PlatformSettings(server=ServerSettings(demo=True))
SERVERS: Final = 2


@cache
def room_keys() -> RoomKeys:
    """The keys of all rooms. What they sign is in no trace; what they decide (a draw) is always the same."""
    return RoomKeys((b"p" * 32,), (passes.new_key(),), Ed25519PrivateKey.from_private_bytes(b"d" * 32), b"m" * 32)


class MachineClock:
    """The clock of one machine: apart from the others, a little too fast or slow, and it may jump."""

    def __init__(self, loop: SeededLoop, skew_us: int, drift_ppm: int) -> None:
        self._loop, self.skew_us, self._drift_ppm = loop, skew_us, drift_ppm

    def __call__(self) -> int:
        now_us = self._loop.now_us
        return BEGIN_US + now_us + now_us * self._drift_ppm // 1_000_000 + self.skew_us


class MailBox:
    """Everybody's phone: a message that arrives is here, even if the sender never heard that it did."""

    name = "sms"  # short texts: mails would draw a PDF each

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.answered: set[str] = set()  # whose sender heard that they arrived
        self.sent_again = 0

    async def receive(self, message: Message) -> None:
        self.messages.append(message)


class MailChannel:
    """The way to the mailbox, over the network; like SMTP, it notes each message before the next."""

    name = MailBox.name

    def __init__(self, network: Network, box: MailBox) -> None:
        self._network, self._box = network, box

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for place, message in enumerate(messages):
            outcomes.append(await self._send(message))
            if note is not None:
                try:
                    await note(place, outcomes[-1])
                except Unavailable as error:
                    return outcomes + [Outcome(False, final=False, reason=error.message)] * (
                        len(messages) - len(outcomes)
                    )
        return outcomes

    async def _send(self, message: Message) -> Outcome:
        self._box.sent_again += message.id in self._box.answered
        try:
            await self._network.call(MAIL, "send", lambda: self._box.receive(message))
        except Lost as error:
            return Outcome(False, final=False, reason=str(error))
        self._box.answered.add(message.id)
        return Outcome(True)


class Shared:
    """What all processes reach over the network."""

    def __init__(
        self,
        loop: SeededLoop,
        network: Network,
        ledger: SharedLedger,
        redis: RedisServer,
        audit: Any,
        provider: Any,
        box: MailBox,
        replica: ReplicaServer,
        scene: Scene,
    ) -> None:
        self.loop, self.network, self.ledger, self.redis = loop, network, ledger, redis
        self.audit, self.provider, self.box, self.replica, self.scene = audit, provider, box, replica, scene
        self.old: set[str] = set()  # processes of the version before
        self.saw_replica: Callable[[int, int], None] = lambda as_of_us, commits: None


class Process:
    """One process: its clients of what is shared. `id` is new after every restart."""

    def __init__(self, shared: Shared, process_id: str, clock: MachineClock) -> None:
        network = shared.network
        self.id, self.machine, self.shared = process_id, clock, shared
        self.is_old = process_id.partition(".")[0] in shared.old
        store = RemoteLedgerStore(network, shared.ledger, shared.loop, as_schema_40=self.is_old)
        self.ledger = SqlLedger(store, replica=self._replica(store))
        self.claims = RemoteClaims(network, shared.redis)
        self.bus = RemoteBus(network, shared.redis, shared.loop, f"bus {process_id}")
        self.is_ready = False

    def _replica(self, store: RemoteLedgerStore) -> RemoteReplica | None:
        """What this process browses."""
        return None

    async def _measure_clock(self) -> None:
        self.clock = await LedgerClock.measure(self.ledger, self.machine)
        self.ledger.due_work.share(self.clock)
        self.ids = Ids(self.clock)
        self.provider = GuardedProvider(
            remote_provider(self.shared.network, self.shared.provider), self.clock, jitter=lambda: 0.5
        )

    async def start(self) -> None:
        raise NotImplementedError


class PlayedServer(Process):
    """A server: what fans, gates and organisers call."""

    def _replica(self, store: RemoteLedgerStore) -> RemoteReplica | None:
        shared = self.shared
        return RemoteReplica(shared.network, shared.replica, store, shared.loop, shared.saw_replica)

    async def start(self) -> None:
        await self._measure_clock()
        network, shared, clock = self.shared.network, self.shared, self.clock
        adapters = Adapters(
            ledger=self.ledger,
            clock=clock,
            claims=self.claims,
            providers=OpenProviders(self.provider),
            webhook_calls=None,  # type: ignore[arg-type]  # organisers' webhooks are not simulated
            bus=self.bus,
            public_url=SETTINGS.public_url,
        )
        vault = WalletVault(Vault([b"w" * 32]))
        self.office = make_box_office(SETTINGS, adapters, OpenProviders(self.provider), KEYS, ISSUER, self.ids, vault)
        self.room = WaitingRoom(
            remote_rooms(network, shared.redis),
            RemoteObject(network, ROOM_AUDIT, shared.audit, lambda why: Unavailable(why, retry_after_s=1.0)),
            room_keys(),
            sale_clock=clock,
            pass_algorithm="EdDSA",
        )
        rules = EntranceRules(per_person=shared.scene.per_person)
        self.limits = EntranceLimits(rules=rules, clock=clock, processes=SERVERS)
        self.shared_limit = shared_limiter(network, shared.redis, clock)
        visits = RoomVisits(self.room)
        self.keeper = VisitKeeper(self.ledger, visits, clock, visits.visited)
        self.organise = OrganiserEvents(self.ledger, clock, self.ids)
        self.cancelling = EventCancellations(self.ledger.organiser, self.office.refunds, clock)
        self.reseating = Reseater(self.ledger.organiser, self.claims, ISSUER, self.office.holds.held, clock)
        self.follower = SalesFollower(self.ledger.catalogue, self.office.sales, self.claims, self.office.recovery)
        await self.follower.sync()
        self.is_ready = True

    def jobs(self, event_id: str) -> list[Callable[[], Awaitable[Any]]]:
        """What a server does by itself."""

        async def tick_room() -> None:
            await self.room.loops.tick(event_id)
            if self.keeper._visits.is_mine(event_id):
                await self.keeper.turn(event_id)

        async def look_at_replica() -> None:
            assert self.ledger.replica is not None
            await self.ledger.replica.look()

        async def recover() -> None:
            await self.office.recovery.check(event_id)

        return [tick_room, tick_room, tick_room, self.follower.sync, recover, look_at_replica, look_at_replica]


class Worker(Process):
    """A worker: the background jobs of `frontrow work`, one turn at a time."""

    async def start(self) -> None:
        await self._measure_clock()
        ledger, claims, clock, sales = self.ledger, self.claims, self.clock, Sales()
        seats = FollowedSeats(sales, HeldSeats(sales, claims, ledger, clock))
        self.recovery = Recovery(sales, claims, ledger, clock)
        self.follower = SalesFollower(ledger.catalogue, sales, claims, self.recovery)
        self.refunds = Refunds(ledger, self.provider, clock, seats=seats)
        self.cancelling = EventCancellations(ledger.organiser, self.refunds, clock)
        self.offering = OfferWorker(sales, ledger, claims, seats, clock)
        self.returns = TicketReturns(sales, ledger, seats, ReturnRefunds(ledger), clock)
        self.checkout = Checkout(
            ledger, self.provider, clock, issuer=ISSUER, seats=seats, public_url=SETTINGS.public_url
        )
        self.reconciler = Reconciler(ledger, self.provider, clock, self.checkout.driver)
        self.sweeper = Sweeper(ledger, clock, on_expired=seats.expired)
        self.relay = OutboxRelay(ledger, self.bus, clock)
        self.status = EventStatusKeeper(ledger.catalogue, clock)
        renderer = TicketRenderer(ledger, KEYS)
        channels: list[Channel] = [
            MailChannel(self.shared.network, self.shared.box),
            InAppChannel(ledger.messages, clock),
        ]
        links = MailLinks(b"l" * 32, "https://tickets.example")
        self.notifier = Notifier(ledger, renderer, channels, clock, links, Receipts(ledger, renderer))
        self.deliverer = self.notifier.worker()
        self.notify = FactConsumer("notify", self.bus, ledger.messages, clock, self.notifier.plan, kinds=MESSAGE_FACTS)
        self.hear = FactConsumer(
            WAITLIST_GROUP, self.bus, ledger.messages, clock, self._note_fact, kinds=SEAT_FACTS, in_turn=True
        )
        await self.follower.sync()
        self.is_ready = True

    async def _note_fact(self, number: int, fact: Fact) -> Sequence[PlannedWrite]:
        self.offering.note_fact(fact)
        self.returns.note_fact(fact)
        self.status.add_fact(fact)
        return ()

    async def _offer(self) -> None:
        await self.offering.serve_noted()
        await self.offering.sweep()

    async def _finish_offers(self) -> None:
        await self.offering.end_due_offers()

    async def _keep_status(self) -> None:
        await self.status.update_changed()
        await self.status.sweep()

    async def _check_claims(self, event_id: str) -> None:
        await self.recovery.check(event_id)
        await self.recovery.reconcile(event_id)

    def jobs(self, event_id: str) -> list[Callable[[], Awaitable[Any]]]:
        """One turn of each job."""
        return [
            self.sweeper.sweep,
            self.relay.relay_pending,
            self.notify.turn,
            self.hear.turn,
            self.deliverer.round,
            self.checkout.work,
            self.checkout.work,
            self.refunds.work,
            self.reconciler.run,
            self.cancelling.work,
            self._offer,
            self._finish_offers,
            self.returns.sweep,
            self._keep_status,
            self.follower.sync,
            lambda: self._check_claims(event_id),
        ]


GROUPS: Final = ALL_GROUPS
