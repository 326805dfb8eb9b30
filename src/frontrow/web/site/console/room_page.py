"""The room's page for its visitors, as its owner designed it: languages, title, text, colour, logo, way to the shop."""

from typing import Any, Final

from frontrow.boxoffice.organiser.model.brands import Logo
from frontrow.core.errors import FrontrowError
from frontrow.shared.cookie_headers import read_cookie
from frontrow.waitingroom.console.model.page_design import PageDesign
from frontrow.waitingroom.console.model.room_plans import RoomPlan
from frontrow.waitingroom.notices.model import TurnNoticeKind
from frontrow.web.endpoints.room.page import PlainSurroundings
from frontrow.web.endpoints.room.page_texts import REFUSALS, REFUSED
from frontrow.web.http.brand_styles import ShownBrand, brand_style
from frontrow.web.http.cookies import LANGUAGE_COOKIES
from frontrow.web.http.messages import EndpointRequest
from frontrow.web.site.fans.waiting_room import script_words
from frontrow.web.site.languages import DEFAULT, Words, best_language, words_of

PLAIN_DESIGN: Final = PageDesign()


class DesignedSurroundings(PlainSurroundings):
    """Implements `PageSurroundings` for rooms of the console. `plans` changes while the server runs."""

    def __init__(
        self,
        titles: Any,
        plans: dict[str, RoomPlan],
        colours: tuple[str, ...],
        notice_kinds: tuple[TurnNoticeKind, ...] = (),
    ) -> None:
        super().__init__(titles)
        self._plans, self._colours, self._notice_kinds = plans, colours, notice_kinds

    def words(self, request: EndpointRequest, event: str = "") -> Words:
        offered, language = self._design(event).languages, language_of(request)
        return words_of(language if language in offered else DEFAULT if DEFAULT in offered else offered[0])

    def shared_words(self, request: EndpointRequest) -> tuple[Any, bytes]:
        return words_of(best_language("", _accepted(request))), b"vary: accept-language\r\n"

    def error_text(self, error: FrontrowError, request: EndpointRequest) -> str:
        return str(self.words(request)(REFUSALS.get(error.code, REFUSED)))

    def fields(self, event: str, base: str, words: Any) -> dict[str, Any]:
        plan, design = self._plans.get(event), self._design(event)
        found = super().fields(event, base, words)
        title = design.title(words.language)
        style = brand_style(design.colour, self._colours) if design.colour else None
        logo = Logo(design.logo.hash, design.logo.width, design.logo.height) if design.logo else None
        return found | {
            "event_title": title or found["event_title"],
            "home": (plan.shop_url if plan is not None else "") or f"{base}/",
            "script_words": script_words(words.language),
            "house": ShownBrand(title or event, style, logo) if style or logo else None,
            "own_text": design.text(words.language),
            "notice_kinds": self._notice_kinds,
        }

    def shop_url(self, event: str) -> str | None:
        plan = self._plans.get(event)
        return plan.shop_url if plan is not None and plan.shop_url else None

    def _design(self, event: str) -> PageDesign:
        plan = self._plans.get(event)
        return plan.design if plan is not None else PLAIN_DESIGN


def _accepted(request: EndpointRequest) -> str:
    return (request.header(b"accept-language") or b"").decode("latin-1")


def language_of(request: EndpointRequest) -> str:
    cookie = (request.header(b"cookie") or b"").decode("latin-1")
    return best_language(read_cookie(cookie, LANGUAGE_COOKIES), _accepted(request))
