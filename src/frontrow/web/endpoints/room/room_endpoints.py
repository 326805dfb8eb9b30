"""The endpoints of the waiting rooms of this process, in groups: visitors, visits, documents, shop, organiser.

`routes` says which endpoint answers which route, on the fast path and behind the framework.
"""

from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.endpoints.room.documents import DocumentEndpoints
from frontrow.web.endpoints.room.hand_overs import HandOverEndpoints
from frontrow.web.endpoints.room.organiser import OrganiserEndpoints
from frontrow.web.endpoints.room.page import RoomPages
from frontrow.web.endpoints.room.shop_health import ShopHealthEndpoints
from frontrow.web.endpoints.room.visitors import JoinIdentity, VisitorEndpoints
from frontrow.web.endpoints.room.visits import VisitEndpoints
from frontrow.web.streams.positions import Streams


class RoomEndpoints:
    """Every endpoint of every room of this process."""

    def __init__(
        self,
        room: WaitingRoom,
        entry: EntranceLimits,
        pages: RoomPages,
        streams: dict[str, Streams],
        *,
        organiser_key: str = "",
        identity: JoinIdentity | None = None,
    ) -> None:
        self.room = room
        self.entry = entry
        self.pages = pages
        self.streams = streams
        self.context = RoomContext(room, entry, pages)
        self.counts = self.context.counts
        self.documents = DocumentEndpoints(self.context, streams)
        self.hand_overs = HandOverEndpoints(self.context, self.documents)
        self.visitors = VisitorEndpoints(self.context, identity, self.hand_overs.claim)
        self.visits = VisitEndpoints(self.context, self.hand_overs.allow_shop)
        self.shop_health = ShopHealthEndpoints(self.context)
        self.organiser = OrganiserEndpoints(self.context, organiser_key)
