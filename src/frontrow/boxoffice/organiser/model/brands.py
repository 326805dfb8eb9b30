"""The brand of an organisation: one colour and a logo. Pure values.

The organisation gives one colour. What is shown in it follows from it (`shades_of`). Buttons keep it as it is, with
black or white text on it. Text in the colour is made darker or lighter as far as people need to read it.
"""

from typing import Final

import msgspec

from frontrow.core.errors import InvalidInput
from frontrow.shared.colours import HEX, LEAST_CONTRAST, contrast, luminance, mix, parts_of

BLACK, WHITE = "#000000", "#ffffff"
HOVER_PERCENT: Final = 20
SOFT_PERCENT: Final = 12  # of the colour, in a background
STEP_PERCENT: Final = 2
LEAST_FILL: Final = 1.3  # the contrast from which on a button stands out; its text has its own
MAIL_LOGO_WIDTH, MAIL_LOGO_HEIGHT = 240, 48
HALF: Final = 0.18  # the luminance from which on black is easier to read than white


class Logo(msgspec.Struct, frozen=True):
    """A prepared logo: the hash of its picture, and its size in pixels."""

    hash: str
    width: int
    height: int


class Brand(msgspec.Struct, frozen=True):
    """The brand of an organisation. An empty colour is the site's own; without a logo the site's name is shown."""

    organiser_id: str
    name: str = ""  # of the organisation
    colour: str = ""
    logo: Logo | None = None
    changed_at_us: int = 0


class Paper(msgspec.Struct, frozen=True):
    """What a brand is shown on, in one scheme: the page, and the cards on it."""

    page: str
    card: str


PRINT: Final = Paper("#faf6f0", WHITE)  # mails and tickets


class Shades(msgspec.Struct, frozen=True):
    """A brand's colour in one scheme: as text, as a button behind `on_brand`, when pointed at, as a soft background."""

    brand: str
    brand_fill: str
    brand_hover: str
    on_brand: str
    brand_soft: str


class TicketLook(msgspec.Struct, frozen=True):
    """How tickets and wallet passes look: `fill` behind text in `ink`, labels in `label`, a logo as PNG, the event's
    picture, and who sells. Empty: our own."""

    fill: str = ""
    ink: str = ""
    label: str = ""
    logo: bytes = b""
    picture: bytes = b""
    seller: str = ""


OUR_LOOK: Final = TicketLook()


class MailBrand(msgspec.Struct, frozen=True):
    """How mails look. An empty `fill` is the usual colour; `logo` and the event's picture come as attachments."""

    name: str
    fill: str = ""
    ink: str = ""
    logo: Logo | None = None
    pictured: bool = False

    @property
    def logo_size(self) -> tuple[int, int]:
        """Width and height of the logo in a mail."""
        if self.logo is None:
            return 0, 0
        scale = min(1.0, MAIL_LOGO_WIDTH / self.logo.width, MAIL_LOGO_HEIGHT / self.logo.height)
        return round(self.logo.width * scale), round(self.logo.height * scale)


def mail_brand(brand: Brand, event_colour: str = "", *, pictured: bool = False) -> MailBrand:
    """The look of a mail: the seller's colour, else that of the event's picture, on white paper."""
    colour = brand.colour or event_colour
    if not colour:
        return MailBrand(brand.name, logo=brand.logo, pictured=pictured)
    shades = shades_of(colour, PRINT)
    return MailBrand(brand.name, shades.brand_fill, shades.on_brand, brand.logo, pictured)


def ticket_look(brand: Brand, logo: bytes, event_colour: str = "", picture: bytes = b"") -> TicketLook:
    """The look of tickets: the seller's colour, else that of the event's picture. Labels are softer than the text, as
    far as people can still read them."""
    colour = brand.colour or event_colour
    if not colour:
        return TicketLook(logo=logo, picture=picture, seller=brand.name)
    shades = shades_of(colour, PRINT)
    label = mix(shades.on_brand, shades.brand_fill, SOFT_PERCENT)
    if contrast(label, shades.brand_fill) < LEAST_CONTRAST:
        label = shades.on_brand
    return TicketLook(shades.brand_fill, shades.on_brand, label, logo, picture, brand.name)


def checked_colour(text: str) -> str:
    """The colour as `#rrggbb`; empty for none. `InvalidInput` if it is none."""
    text = text.strip()
    if not text:
        return ""
    if not HEX.fullmatch(text):
        raise InvalidInput("a colour has six digits of 0-9 and a-f, like #a3123f", param="colour")
    return "#" + "".join(f"{part:02x}" for part in parts_of(text))


def shades_of(colour: str, paper: Paper) -> Shades:
    """The colour as it is shown on this paper. Text in it and on it has a contrast of 4.5 or more."""
    away = BLACK if luminance(paper.card) > HALF else WHITE  # from the paper
    for percent in range(0, 101, STEP_PERCENT):
        brand = mix(colour, away, percent)
        soft = mix(paper.card, brand, SOFT_PERCENT)
        if min(contrast(brand, behind) for behind in (paper.page, paper.card, soft)) >= LEAST_CONTRAST:
            break
    seen = min(contrast(colour, paper.page), contrast(colour, paper.card)) >= LEAST_FILL
    fill = colour if seen else brand
    ink = WHITE if contrast(WHITE, fill) >= LEAST_CONTRAST else BLACK  # one of them always has enough
    hover = mix(fill, BLACK if ink == WHITE else WHITE, HOVER_PERCENT)
    return Shades(brand, fill, hover, ink, soft)
