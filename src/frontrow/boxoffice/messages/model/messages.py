"""What is sent: facts on the bus, messages to people, deliveries with their retries, webhook endpoints. Pure values.

A delivery is one message to one receiver over one channel. It waits, is claimed by a worker, and is sent, tried again
later (each pause twice as long, up to a bound) or given up when its time is over.
"""

from enum import StrEnum
from typing import Final

import msgspec

from frontrow.core.errors import NotFound, Refused

DEFAULT_CHANNELS: Final = ("email", "in_app")
MAX_ERROR_CHARS: Final = 300
APP_DEVICE: Final = "fcm:"  # begins the endpoint of an app, before its registration token
UNHANDLED_FACT: Final = "poison"  # stored: the kind of deliveries that keep facts no consumer could handle


class Contact(msgspec.Struct, frozen=True):
    """How a person wants to be reached. `channels` is the person's choice; the in-app page always has everything."""

    fan: str
    email: str = ""
    phone: str = ""
    locale: str = "en"
    channels: tuple[str, ...] = DEFAULT_CHANNELS
    push: tuple[str, ...] = ()  # web push subscriptions, JSON each
    name: str = ""  # as the buyer wrote it; empty when nobody asked
    proven_phone: str = ""  # the number whose owner typed the code that was sent there

    @property
    def takes_sms(self) -> bool:
        """Whether SMS may go to `phone`: its owner has proven it."""
        return bool(self.phone) and self.phone == self.proven_phone


class Buyer(msgspec.Struct, frozen=True):
    """Who bought something, as organisers see it."""

    email: str = ""
    name: str = ""


NOBODY: Final = Buyer()


class Attachment(msgspec.Struct, frozen=True):
    name: str
    media_type: str
    body: bytes


class Message(msgspec.Struct, frozen=True):
    """One message to one person, rendered. `id` is the same however often it is sent."""

    id: str
    kind: str
    contact: Contact
    subject: str
    text: str
    html: str = ""
    short: str = ""
    attachments: tuple[Attachment, ...] = ()
    url: str = ""  # the link that does what the message asks for
    reply_to: str = ""  # where answers go; empty: to the sender
    since_us: int = 0  # no copy of it was sent before; 0: unknown


class InAppMessage(msgspec.Struct, frozen=True):
    """A message on a fan's page. One with a `notice` has no text yet: it is written when somebody reads it."""

    id: str
    fan: str
    subject: str
    body: str
    created_at_us: int
    read_at_us: int | None = None
    notice: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """What became of an attempt. `final` and not `sent`: trying again would not help.

    `tried` is false when our own stores were away: no receiver was called, so it does not count as an attempt.
    """

    sent: bool
    final: bool = True
    reason: str = ""
    tried: bool = True


SENT: Final = Outcome(True)


def not_tried(error: Exception) -> Outcome:
    """The outcome when our own stores do not answer."""
    return Outcome(False, final=False, reason=str(error), tried=False)


class CodeAnswer(StrEnum):
    """What came of a code that proves a phone number."""

    RIGHT = "right"
    WRONG = "wrong"
    OVER = "over"  # none was sent, its time is over, or there were too many tries


class DeliveryState(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given_up"


class NewDelivery(msgspec.Struct, frozen=True):
    """Something to be delivered. Queues do not wait for each other; `dedupe` makes a repeat harmless."""

    kind: str
    queue: str
    dedupe: str
    body: str


class Delivery(msgspec.Struct, frozen=True):
    """A claimed delivery; `attempts` were made before."""

    number: int
    kind: str
    queue: str
    dedupe: str
    body: str
    attempts: int
    created_at_us: int


class UnhandledFact(msgspec.Struct, frozen=True):
    """A fact that a consumer could not handle, as its dead letter keeps it."""

    number: int
    fact: str
    error: str


class DeadLetter(msgspec.Struct, frozen=True):
    """A delivery or fact that failed for good; `queue` of an unhandled fact is the consumer that failed."""

    number: int
    kind: str
    queue: str
    dedupe: str
    body: str
    attempts: int
    last_error: str
    changed_at_us: int

    @property
    def reason(self) -> str:
        """Why it failed."""
        if self.kind != UNHANDLED_FACT:
            return self.last_error
        try:
            return msgspec.json.decode(self.body, type=UnhandledFact).error
        except msgspec.DecodeError:
            return self.body[:MAX_ERROR_CHARS]


class SentDelivery(msgspec.Struct, frozen=True):
    """One delivery to a webhook. `state` is waiting, sent or given_up; a waiting one is due at `next_at_us`."""

    number: int
    fact_id: str
    state: str
    attempts: int
    created_at_us: int
    next_at_us: int
    last_error: str


class DeliveryResult(msgspec.Struct, frozen=True):
    """What became of a claimed delivery."""

    number: int
    state: DeliveryState
    attempts: int
    next_at_us: int
    reason: str = ""


class Endpoint(msgspec.Struct, frozen=True):
    """Where an organiser wants an event's facts; `facts` empty means all. The secret signs what is sent."""

    id: str
    organiser: str
    event_id: str
    url: str
    secret: str
    facts: tuple[str, ...] = ()
    active: bool = True

    def __repr__(self) -> str:
        return f"Endpoint({self.id}, {self.organiser}, {self.url})"


class EndpointNotFound(NotFound):
    code = "webhook_not_found"


class DeliveryNotFound(NotFound):
    code = "delivery_not_found"


class EmailChangeRefused(Refused):
    """The organiser may not change this buyer's e-mail address."""

    code = "email_change_refused"
