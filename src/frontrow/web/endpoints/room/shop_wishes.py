"""The page that a visitor wants at a shop on another domain, and the browser that it belongs to.

A shop's connector leads to the room with `bind`, the hash of a verifier that it keeps in the browser, and `return`, the
wanted page as a whole URL. In forms both travel as one text: `bind@URL`. A URL counts only if it begins with the origin
of a registered shop, followed by a plain path: nobody is led anywhere else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.credentials.hand_over import is_bind
from frontrow.waitingroom.protect.guard import is_page

TOKEN: Final = "frontrow"  # noqa: S105  # the query parameter with the hand-over, always the last one
_ORIGIN = re.compile(r"https?://[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[1-9][0-9]{0,4})?\Z")
_OLD_TOKENS = re.compile(rf"([?&]{TOKEN}=[A-Za-z0-9_-]*)+\Z")
MAX_SHOPS = 64


@dataclass(frozen=True, slots=True)
class ShopWish:
    """A page of a registered shop. Without `bind` the shop's connector has not seen this browser yet."""

    shop: str
    page: str
    bind: str = ""

    @property
    def url(self) -> str:
        return self.shop + self.page

    def url_with(self, token: str) -> str:
        """The URL that carries a hand-over, at its end."""
        return f"{self.url}{'&' if '?' in self.page else '?'}{TOKEN}={token}"


def check_origins(shops: Sequence[str]) -> tuple[str, ...]:
    """`shops` if each is an origin as browsers write it. Raises ConfigError."""
    for shop in shops:
        if not _ORIGIN.match(shop) or shop.endswith((":80", ":443")):
            raise ConfigError(
                f"room.shops: {shop!r} is not an origin like https://shop.example.org", param="room.shops"
            )
    if len(shops) > MAX_SHOPS:
        raise ConfigError(f"room.shops: at most {MAX_SHOPS} shops", param="room.shops")
    return tuple(shops)


def bind_of_query(query: str) -> str:
    """The `bind` of a request for the page, if it can be one."""
    given = parse_qs(query, max_num_fields=20).get("bind", [""])[0] if "bind=" in query else ""
    return given if is_bind(given) else ""


def read_shop_wish(text: str, shops: Sequence[str]) -> ShopWish | None:
    """The wish in a form's field or in the query; None if there are no shops. Without a page of a registered shop it is
    the front of the first one, which does not know the browser yet."""
    if not shops:
        return None
    bind, _, url = text.partition("@") if text[43:44] == "@" and is_bind(text[:43]) else ("", "", text)
    if not url:
        return ShopWish(shops[0], "/", bind)
    for shop in shops:
        if url == shop:
            return ShopWish(shop, "/", bind)
        if url.startswith(f"{shop}/"):
            page = _OLD_TOKENS.sub("", url[len(shop) :])
            return ShopWish(shop, page if is_page(page) else "/", bind)
    return ShopWish(shops[0], "/")
