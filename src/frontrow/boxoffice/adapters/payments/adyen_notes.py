"""What Adyen has said of one payment, note by note, and the `Intent` that follows from it.

Adyen's payments cannot be read: it tells each outcome once, in the answer to a call or in a webhook. Both are kept as
notes. The object is worked out from all of them, so their order does not matter and a doubled one changes nothing.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState, ProviderRefund
from frontrow.boxoffice.payments.ports import ProviderNote

MADE: Final = "made"
SESSION: Final = "session"
PAGE: Final = "page"  # the session of Adyen's page, where the first one is that of its form
HOSTED: Final = "hosted"  # the fan was sent to the session's page
CLOSED: Final = "closed"  # we want no money for it any more
# Our ids of ways of paying -> Adyen's. Its other names are brands of cards.
TYPES: Final = {
    "card": "scheme",
    "klarna": "klarna",
    "paypal": "paypal",
    "ideal": "ideal",
    "bancontact": "bcmc",
    "eps": "eps",
    "przelewy24": "onlineBanking_PL",
    "twint": "twint",
    "swish": "swish",
}
OUR_METHODS: Final = {theirs: ours for ours, theirs in TYPES.items()} | {"bcmc_mobile": "bancontact"}
# Methods whose money comes at once: an authorisation is all there is.
AT_ONCE: Final = frozenset({"ideal", "bcmc", "bcmc_mobile", "eps", "onlineBanking_PL", "twint", "swish"})
# Adyen's words for refusals -> the codes that our rules know; anything else is a declined card.
REFUSALS: Final = {
    "cvc declined": "incorrect_cvc",
    "invalid card number": "invalid_number",
    "expired card": "expired_card",
    "not enough balance": "insufficient_funds",
    "3d not authenticated": "authentication_failed",
    "cancelled by shopper": "cancelled_by_fan",
}


class Made(msgspec.Struct, frozen=True):
    """What the object is for."""

    amount: int
    currency: str
    booking: str
    attempt: int
    first_key: str = ""  # of the call that creates it, where the fan's card came with it


class AdyenSession(msgspec.Struct, frozen=True):
    """The session that a fan pays in: on Adyen's page at `url`, or with `data` in its form on our page."""

    id: str
    url: str = ""
    ends_at_us: int = 0
    data: str = ""
    methods: tuple[str, ...] = ()  # of the form, for a fan who goes to the page after all
    event: str = ""

    @property
    def secret(self) -> str:
        """What Adyen's form needs, in one text: an id has no colon."""
        return f"{self.id}:{self.data}" if self.data else self.id


class AdyenWord(msgspec.Struct, frozen=True):
    """One thing that happened to a payment. `psp` is the payment, `own` the request that it answers."""

    code: str
    success: bool = True
    psp: str = ""
    own: str = ""
    amount: int = 0
    method: str = ""
    reason: str = ""
    url: str = ""
    refund_id: str = ""
    key: str = ""


_read_told = msgspec.json.Decoder(AdyenWord).decode


class Authorisation:
    """One try of a fan to pay: a card may be refused, and another follow."""

    def __init__(self, psp: str) -> None:
        self.psp = psp
        self.authorised: bool | None = None
        self.amount = self.captured = 0
        self.method = self.reason = ""
        self.capture_asked = self.capture_failed = self.cancelled = False

    @property
    def is_live(self) -> bool:
        return bool(self.authorised) and not self.cancelled


class AdyenObject:
    """An object as its notes tell it."""

    def __init__(self, ref: str, notes: Sequence[ProviderNote]) -> None:
        self.ref = ref
        by_name = {note.name: note for note in notes}
        made = by_name.get(MADE)
        self.account = made.account if made else ""
        self.made = msgspec.json.decode(made.body, type=Made) if made else None
        self.made_at_us = made.at_us if made else 0
        opened = [
            msgspec.json.decode(by_name[one].body, type=AdyenSession) for one in (SESSION, PAGE) if one in by_name
        ]
        self.session = opened[0] if opened else None
        self.sessions = {one.id for one in opened}
        self.page_url = next((one.url for one in opened if one.url), "")
        self.is_closed, self.is_hosted = CLOSED in by_name, HOSTED in by_name
        self.told = [_read_told(note.body) for note in notes if note.name.partition(":")[2]]
        self._tries: dict[str, Authorisation] = {}
        answered = {one.key for one in self.told if one.code != "SENT"}
        open_calls = [one for one in self.told if one.code == "SENT" and one.key not in answered]
        asked = [one for one in self.told if one.code in ("AUTHORISATION", "ACTION")]
        self._order = asked + open_calls  # a call that was not answered is the last thing that is known
        for one in self.told:
            self._hear(one)

    def _hear(self, one: AdyenWord) -> None:
        if not one.psp:
            return
        tried = self._tries.setdefault(one.psp, Authorisation(one.psp))
        tried.method = tried.method or one.method
        match one.code:
            case "AUTHORISATION" if one.success:
                tried.authorised, tried.amount = True, one.amount
            case "AUTHORISATION":
                tried.authorised = tried.authorised or False
                tried.reason = one.reason
            case "ASKED_CAPTURE":
                tried.capture_asked = True
            case "CAPTURE" if one.success:
                tried.captured = one.amount
            case "CAPTURE":
                tried.capture_failed = True
            case "CAPTURE_FAILED":
                tried.captured, tried.capture_failed = 0, True
            case "CANCELLATION" | "TECHNICAL_CANCEL" if one.success:
                tried.cancelled = True
            case _:
                pass
        if tried.authorised and tried.method in AT_ONCE:
            tried.captured = tried.amount

    @property
    def main(self) -> Authorisation | None:
        """The authorisation that counts: the one that is captured, else the first that is still there."""
        live = [one for one in self._tries.values() if one.is_live]
        return next((one for one in live if one.capture_asked or one.captured), live[0] if live else None)

    @property
    def spare(self) -> list[Authorisation]:
        """Authorisations beside the one that counts: a fan paid twice. Each is an object of its own to give back."""
        return [one for one in self._tries.values() if one.is_live and one is not self.main]

    @property
    def was_cancelled(self) -> bool:
        return any(one.cancelled for one in self._tries.values())

    @property
    def capture_failed(self) -> bool:
        return self.main is not None and self.main.capture_failed

    @property
    def is_undecided(self) -> bool:
        """Whether Adyen may be working on an authorisation whose end was not told."""
        if not self._order:
            return False
        last = self._order[-1]
        return last.code in ("SENT", "ACTION") or (bool(last.psp) and self._tries[last.psp].authorised is None)

    def asked(self, code: str, key: str = "") -> list[AdyenWord]:
        """The requests of this kind that Adyen has received."""
        return [one for one in self.told if one.code == code and (not key or one.key == key)]

    def is_waiting(self, tried: Authorisation) -> bool:
        """Whether Adyen has received a capture or a cancel of it, and has not said what became of that."""
        asked = (*self.asked("ASKED_CAPTURE"), *self.asked("ASKED_CANCEL"))
        return any(one.psp == tried.psp and not self.is_answered(one) for one in asked)

    def _asked_method(self) -> str:
        """The way of paying that the fan is on, unless Adyen's page asks for it."""
        return _our_method(self._order[-1].method) if self._order else ""

    def is_answered(self, request: AdyenWord) -> bool:
        """Whether a notice has said what became of a request."""
        return any(one.own == request.own and not one.code.startswith("ASKED") for one in self.told)

    def intent(self, tried: Authorisation | None = None, *, ref: str = "") -> Intent:
        """The object for our rules; with `tried`, one authorisation by itself."""
        assert self.made is not None
        main = tried or self.main
        state, error, failure, url = self._state(main)
        return Intent(
            ref or self.ref,
            state,
            self.made.amount,
            self.made.currency,
            captured_minor=main.captured if main and state is IntentState.CAPTURED else 0,
            booking_id=self.made.booking,
            attempt=self.made.attempt,
            client_secret=self.session.secret if self.session else self.ref,
            action_url=url,
            error=error,
            failure=failure,
            refunds=self._refunds(main),
            created_at_us=self.made_at_us,
            method=_our_method(main.method if main else "") or self._asked_method(),
        )

    def spare_intents(self) -> list[Intent]:
        """What a fan paid a second time, as objects that no payment of ours names."""
        return [self.intent(one, ref=f"{self.ref}/{one.psp}") for one in self.spare]

    def find_try(self, psp: str) -> Authorisation | None:
        return self._tries.get(psp)

    def _state(self, main: Authorisation | None) -> tuple[IntentState, str, str, str]:
        """The state with the reason of the last refusal, its id, and where the fan has something to do."""
        if main is not None and main.is_live:
            if main.captured:
                return IntentState.CAPTURED, "", "", ""
            return (IntentState.PROCESSING if self.is_waiting(main) else IntentState.AUTHORISED), "", "", ""
        if main is not None or self.is_closed or self.was_cancelled:
            return IntentState.VOID, "", "", ""
        last = self._order[-1] if self._order else None
        if last is not None and last.code == "ACTION":
            return IntentState.ACTION, "", "", last.url
        if last is not None and last.code == "AUTHORISATION" and not last.success:
            code = REFUSALS.get(last.reason.strip().lower(), "card_declined")
            return IntentState.CREATED, code, last.psp or last.key, ""
        if last is not None and last.code == "SENT":
            return IntentState.PROCESSING, "", "", ""
        if self.is_hosted and self.session is not None:
            return IntentState.ACTION, "", "", self.page_url
        return IntentState.CREATED, "", "", ""

    def _refunds(self, main: Authorisation | None) -> tuple[ProviderRefund, ...]:
        """The refunds of one authorisation. Until a notice says yes or no, a refund is pending."""
        psp = main.psp if main else ""
        found: dict[str, ProviderRefund] = {}
        outcome: dict[str, AdyenWord] = {}
        for one in self.told:
            if one.psp != psp or not one.own:
                continue
            if one.code in ("ASKED_REFUND", "REFUND"):
                ours = one.refund_id if one.refund_id.startswith("rfd_") else ""
                was = found.get(one.own)
                found[one.own] = ProviderRefund(one.own, one.amount, (was.refund_id if was else "") or ours)
            if one.code in ("REFUND", "REFUND_FAILED", "REFUNDED_REVERSED"):
                known = outcome.get(one.own)
                if known is None or one.code != "REFUND":  # a failure that came later counts, whatever came first
                    outcome[one.own] = one
        refunds = []
        for own, refund in found.items():
            said = outcome.get(own)
            failed = said is not None and (said.code != "REFUND" or not said.success)
            failure = (said.reason or "refused") if said is not None and failed else ""
            refunds.append(msgspec.structs.replace(refund, failed=failed, pending=said is None, failure=failure[:200]))
        return tuple(refunds)


def _our_method(theirs: str) -> str:
    return OUR_METHODS.get(theirs, "card") if theirs else ""
