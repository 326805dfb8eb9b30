"""The organiser's side of one process: services for venues, events, seats, codes and figures, and their jobs."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from frontrow.boxoffice.feed.service import MapFeed
from frontrow.boxoffice.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.ledger.verifying import verify
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.figures import RoomFigures
from frontrow.boxoffice.model.room_rules import RoomRules
from frontrow.boxoffice.ports import SeatClaims, TicketIssuer
from frontrow.boxoffice.services.analytics import Figures
from frontrow.boxoffice.services.cancelling import Cancelling
from frontrow.boxoffice.services.chain import ChainCheck
from frontrow.boxoffice.services.driving import Seats
from frontrow.boxoffice.services.exports import Exports
from frontrow.boxoffice.services.organise import Organise
from frontrow.boxoffice.services.refunds import Refunds
from frontrow.boxoffice.services.reseating import Reseating
from frontrow.boxoffice.services.workers import Job
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError
from frontrow.core.ids import Ids
from frontrow.waitingroom.room import WaitingRoom
from frontrow.web.fan_codes import FanCodes
from frontrow.web.live_figures import LiveFiguresStreams
from frontrow.web.live_history import History
from frontrow.web.openings import Openings


@dataclass(frozen=True)
class Office:
    """What organisers' handlers use besides the fans' services."""

    organise: Organise
    reseating: Reseating
    cancelling: Cancelling
    codes: FanCodes
    figures: Figures
    live: LiveFiguresStreams
    history: History
    chain: ChainCheck
    exports: Exports

    def jobs(self, *, inside: bool) -> Sequence[Job]:
        """What goes on by itself: the history in every server, cancellations wherever the jobs run."""
        return [self.history.job(), *([self.cancelling.job()] if inside else [])]


def open_office(
    ledger: SqlLedger,
    claims: SeatClaims,
    issuer: TicketIssuer,
    seats: Seats,
    refunds: Refunds,
    room: WaitingRoom,
    openings: Openings,
    feeds: dict[str, MapFeed],
    clock: Clock,
    ids: Ids,
    room_defaults: RoomRules,
    human_checks: tuple[str, ...],
) -> Office:
    """Everything put together."""
    organise = Organise(ledger, clock, ids, room_defaults=room_defaults, human_checks=human_checks)

    def states_of(event_id: str) -> bytes | bytearray | None:
        feed = feeds.get(event_id)
        return feed.ring.states if feed is not None else None

    async def event_of(event_id: str) -> Event:
        return openings.events.get(event_id) or await ledger.event(event_id)

    def room_of(event_id: str) -> RoomFigures | None:
        return room_figures(room, event_id)

    figures = Figures(ledger, clock, organise.venues.plan, states_of, room_of)
    live = LiveFiguresStreams(figures, event_of)
    return Office(
        organise,
        Reseating(ledger, claims, issuer, seats, clock),
        Cancelling(ledger, refunds, clock),
        FanCodes(ledger, room.audit, organise.rules_of, clock, room.codes),
        figures,
        live,
        History(clock, lambda: openings.events, states_of, room_of, lambda: live.speeds()),
        ChainCheck(lambda: verify(ledger.store), clock),
        Exports(ledger),
    )


def room_figures(room: WaitingRoom, event_id: str) -> RoomFigures | None:
    """What the waiting room knows of an event, if it has one here."""
    with contextlib.suppress(FrontrowError):
        view = room.view(event_id)
        lanes = view.state.lanes
        return RoomFigures(
            view.state.phase.value, sum(lane.issued for lane in lanes), sum(lane.hi for lane in lanes), view.waiting,
            view.state.active, sum(view.rates_milli) / 1000,
        )  # fmt: skip
    return None
