"""Ticket types (cards, and a matrix of their prices), add-ons, codes and shared limits of an event, on one page.

Every list has spare lines; the script shows them one at a time."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.event_editing import EventEdit
from frontrow.boxoffice.events.model.event_changes import ChangedMeanwhile
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.pricing.model.booking_choices import add_on_counter, limit_counter
from frontrow.boxoffice.pricing.model.discounts import discount_counter
from frontrow.boxoffice.pricing.model.sale_options import (
    MAX_ADD_ONS,
    MAX_COUNT,
    MAX_DISCOUNTS,
    MAX_LIMITS,
    MAX_OF_ONE_ADD_ON,
    MAX_TYPES,
    AddOn,
    Discount,
    SharedLimit,
    TicketType,
    fold_code,
)
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.errors import FrontrowError, NotFound, Unavailable
from frontrow.shared.money import Money
from frontrow.web.http.access import Caller, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.events.event_steps import (
    MEANWHILE,
    ONE,
    READS,
    WRITES,
    OrganiserEvent,
    done_of,
    load_event,
    page_after,
)
from frontrow.web.site.organiser.events.new_event import STEPS
from frontrow.web.site.organiser.form_fields import (
    NEEDED,
    Errors,
    Reading,
    Typed,
    local_text,
    money_text,
    percent_text,
)
from frontrow.web.site.organiser.refusal_sentences import sentence_of
from frontrow.web.site.render import render
from frontrow.web.site.routes import Form, FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
PATH: Final = f"{ONE}/options"
SPARE: Final = 2  # empty lines after the filled ones
FIRST_TYPES: Final = 3  # adult, child and concession fit at once
EXAMPLES: Final = (N_("Adult"), N_("Child"), N_("Concession"))  # names in the empty lines
MOST_OF_A_TYPE: Final = 100
MAX_FORM_BYTES: Final = 200_000
BAD_CODE: Final = N_("A code has 2 to 40 letters, digits and dashes.")
ONE_OF_BOTH: Final = N_("Enter a percentage or an amount, not both.")
NO_EFFECT: Final = N_("Enter a percentage, an amount or a hidden ticket type to unlock.")
Values = dict[str, str]


@page(PATH, "sale_options", READS)
async def options(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """All lines as they are."""
    one = await load_event(platform, caller, event_id)
    return await _page(request, platform, caller, one, values_of(one.event, one.plan, one.zone))


@action(PATH, "change_sale_options", WRITES, most_bytes=MAX_FORM_BYTES)
async def change(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Change them, or say what is wrong."""
    one = await load_event(platform, caller, event_id)
    reading = Reading(form, one.zone, one.event.currency)
    types = _read_types(reading, one.plan)
    edit = EventEdit(
        ticket_types=types,
        add_ons=_read_add_ons(reading),
        discounts=_read_discounts(reading, one.plan, hidden_types(types)),
        limits=_read_limits(reading, countables(one.event, one.plan)),
    )
    if not reading.errors:
        try:
            await platform.organiser.organise.change(editor_of(caller), event_id, edit, form.one("tag", 60) or None)
            await platform.box_office.openings.refresh()
            return go_to(page_after(one, "options", on=bool(form.one("on"))))
        except (Unavailable, NotFound):
            raise
        except ChangedMeanwhile:
            reading.errors["form"] = MEANWHILE
        except FrontrowError as error:
            reading.errors["form"] = sentence_of(error)
    return await _page(request, platform, caller, one, form.first(), reading.errors)


async def _page(
    request: Asked,
    platform: Platform,
    caller: Caller,
    one: OrganiserEvent,
    values: Values,
    errors: Errors | None = None,
) -> Response[bytes]:
    event = one.event
    counters = [discount_counter(event.id, each.code) for each in event.discounts]
    counters += [add_on_counter(event.id, each.key) for each in event.add_ons]
    counters += [limit_counter(event, each.key, across_dates=each.across_dates) for each in event.limits]
    used = await platform.ledger.live_uses(counters, platform.clock())
    minor = {tier.key: tier.price.minor for tier in event.tiers}
    return render(
        request,
        "organiser/options.html",
        status=422 if errors else 200,
        one=one,
        of_event=event,
        steps=STEPS,
        v=Typed(values),
        errors=errors or Errors(),
        rows={
            "t": max(FIRST_TYPES, _rows(values, "tname", MAX_TYPES)),
            "a": _rows(values, "aname", MAX_ADD_ONS),
            "d": _rows(values, "dcode", MAX_DISCOUNTS),
            "l": _rows(values, "lname", MAX_LIMITS),
        },
        script="js/organiser/options.js",
        examples=EXAMPLES,
        tiers=[(number, key, _tier_name(event, key), minor.get(key)) for number, key in enumerate(one.plan.tiers)],
        shares=_shares(values, [minor.get(key) for key in one.plan.tiers], event.currency),
        countables=countables(event, one.plan),
        hidden=hidden_types(event.ticket_types),
        used_codes={each.code: used.get(discount_counter(event.id, each.code), 0) for each in event.discounts},
        used_add_ons={each.key: used.get(add_on_counter(event.id, each.key), 0) for each in event.add_ons},
        used_limits={
            each.key: used.get(limit_counter(event, each.key, across_dates=each.across_dates), 0)
            for each in event.limits
        },
        can_write="events:write" in caller.permissions and not one.is_final,
        done=done_of(request),
    )


def _shares(values: Values, prices: Sequence[int | None], currency: str) -> list[list[str]]:
    """What each type costs in each tier by its percentage, whether or not it has a price of its own."""
    found = []
    for n in range(MAX_TYPES):
        asked = Reading(Form([("percent", values.get(f"tpercent{n}", "") if n else "")]))
        points = asked.percent("percent", 100_000) if asked.form.one("percent", 8) else 10_000
        found.append(
            ["" if one is None else money_text(Money(one, currency).percent(points).minor, currency) for one in prices]
        )
    return found


def _tier_name(event: Event, key: str) -> str:
    return next((tier.name for tier in event.tiers if tier.key == key and tier.name), key.capitalize())


def _rows(values: Values, name: str, most: int) -> int:
    """How many lines are shown: all that are filled in, and some spare ones."""
    filled = [
        int(key.removeprefix(name)) for key, text in values.items() if text and re.fullmatch(name + r"\d{1,3}", key)
    ]
    return min(most, max(filled, default=-1) + 1 + SPARE)


def countables(event: Event, plan: Plan) -> list[tuple[str, str]]:
    """What a shared limit can count: (its key, its name)."""
    found = [(f"type:{one.key}", one.name) for one in event.ticket_types]
    found += [(f"add_on:{one.key}", one.name) for one in event.add_ons]
    return found + [(f"tier:{key}", _tier_name(event, key)) for key in plan.tiers]


def hidden_types(types: Sequence[TicketType]) -> list[tuple[str, str]]:
    """What a code can unlock: (its key, its name)."""
    return [(one.key, one.name) for one in types if one.hidden]


def values_of(event: Event, plan: Plan, zone: str) -> Values:
    """The fields of the form."""
    found: Values = {}

    def cash(minor: int) -> str:
        return money_text(minor, event.currency)

    for n, kind in enumerate(event.ticket_types):
        found |= {f"tkey{n}": kind.key, f"tname{n}": kind.name, f"tnote{n}": kind.note}
        found |= {f"tpercent{n}": percent_text(kind.basis_points), f"tmin{n}": str(kind.min_per_booking or "")}
        found |= {f"tmax{n}": str(kind.max_per_booking or ""), f"thidden{n}": "1" if kind.hidden else ""}
        prices = dict(kind.prices)
        found |= {f"tprice{n}-{t}": cash(prices[key]) for t, key in enumerate(plan.tiers) if key in prices}
    for n, extra in enumerate(event.add_ons):
        found |= {f"akey{n}": extra.key, f"aname{n}": extra.name, f"aprice{n}": cash(extra.price_minor)}
        found |= {f"astock{n}": "" if extra.stock is None else str(extra.stock), f"amax{n}": str(extra.max_per_booking)}
    for n, code in enumerate(event.discounts):
        found |= {f"dcode{n}": code.code, f"dpercent{n}": percent_text(code.basis_points) if code.basis_points else ""}
        found |= {f"damount{n}": cash(code.amount_minor) if code.amount_minor else ""}
        found |= {f"dper{n}": "booking" if code.per_booking else "seat", f"duses{n}": str(code.most_uses or "")}
        found |= {f"dperson{n}": str(code.most_per_person or "")}
        found |= {f"dfrom{n}": local_text(code.starts_at_us, zone), f"duntil{n}": local_text(code.ends_at_us, zone)}
        found |= {f"dtier{n}-{t}": "1" for t, key in enumerate(plan.tiers) if key in code.tiers}
        found |= {f"dunlock{n}-{key}": "1" for key in code.unlocks}
    names = [key for key, _ in countables(event, plan)]
    for n, limit in enumerate(event.limits):
        found |= {f"lkey{n}": limit.key, f"lname{n}": limit.name, f"lmost{n}": str(limit.most)}
        found |= {f"ldates{n}": "1" if limit.across_dates else ""}
        found |= {f"lcount{n}-{t}": "1" for t, key in enumerate(names) if key in limit.counts}
    return found


def _key(reading: Reading, prefix: str, n: int, name: str, taken: set[str]) -> str:
    """The key of a line: the one it has, or one made of its name."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    made = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:36] or f"{prefix}{n + 1}"
    key = reading.form.one(f"{prefix}key{n}", 40) or made
    while key in taken:
        key = f"{key[:36]}-{n + 1}"
    taken.add(key)
    return key


def _number(reading: Reading, name: str, low: int, high: int, default: int) -> int:
    return reading.whole(name, low, high) if reading.form.one(name, 9) else default


def _read_types(reading: Reading, plan: Plan) -> tuple[TicketType, ...]:
    found: list[TicketType] = []
    taken: set[str] = set()
    for n in range(MAX_TYPES):
        name = reading.text(f"tname{n}", 100, needed=False)
        if not name:
            continue
        share = reading.percent(f"tpercent{n}", 100_000) if reading.form.one(f"tpercent{n}", 8) else 10_000
        prices = tuple(
            (tier, reading.money(f"tprice{n}-{t}"))
            for t, tier in enumerate(plan.tiers)
            if reading.form.one(f"tprice{n}-{t}", 20)
        )
        found.append(
            TicketType(
                _key(reading, "t", n, name, taken),
                name,
                share if found else 10_000,
                prices if found else (),
                _number(reading, f"tmin{n}", 0, MOST_OF_A_TYPE, 0) if found else 0,
                _number(reading, f"tmax{n}", 0, MOST_OF_A_TYPE, 0),
                reading.text(f"tnote{n}", 200, needed=False),
                bool(found and reading.form.one(f"thidden{n}")),
            )
        )
    return tuple(found)


def _read_add_ons(reading: Reading) -> tuple[AddOn, ...]:
    found: list[AddOn] = []
    taken: set[str] = set()
    for n in range(MAX_ADD_ONS):
        name = reading.text(f"aname{n}", 100, needed=False)
        if name:
            stock = _number(reading, f"astock{n}", 0, MAX_COUNT, -1)
            found.append(
                AddOn(
                    _key(reading, "a", n, name, taken),
                    name,
                    reading.money(f"aprice{n}", needed=True),
                    None if stock < 0 else stock,
                    _number(reading, f"amax{n}", 1, MAX_OF_ONE_ADD_ON, 10),
                )
            )
    return tuple(found)


def _read_discounts(reading: Reading, plan: Plan, hidden: list[tuple[str, str]]) -> tuple[Discount, ...]:
    found: list[Discount] = []
    for n in range(MAX_DISCOUNTS):
        code = fold_code(reading.text(f"dcode{n}", 60, needed=False))
        if not code:
            continue
        points, minor = reading.percent(f"dpercent{n}"), reading.money(f"damount{n}")
        if not re.fullmatch(r"[A-Z0-9][A-Z0-9-]{1,39}", code):
            reading.errors[f"dcode{n}"] = BAD_CODE
        unlocks = tuple(key for key, _ in hidden if reading.form.one(f"dunlock{n}-{key}"))
        if points and minor:
            reading.errors.setdefault(f"dpercent{n}", ONE_OF_BOTH)
        if not (points or minor or unlocks):
            reading.errors.setdefault(f"dpercent{n}", NO_EFFECT)
        found.append(
            Discount(
                code,
                points,
                minor,
                reading.form.one(f"dper{n}") == "booking",
                tuple(key for t, key in enumerate(plan.tiers) if reading.form.one(f"dtier{n}-{t}")),
                _number(reading, f"duses{n}", 0, MAX_COUNT, 0),
                _number(reading, f"dperson{n}", 0, MAX_COUNT, 0),
                reading.when(f"dfrom{n}", needed=False),
                reading.when(f"duntil{n}", needed=False),
                unlocks,
            )
        )
    return tuple(found)


def _read_limits(reading: Reading, names: list[tuple[str, str]]) -> tuple[SharedLimit, ...]:
    found: list[SharedLimit] = []
    taken: set[str] = set()
    for n in range(MAX_LIMITS):
        name = reading.text(f"lname{n}", 100, needed=False)
        if not name:
            continue
        counts = tuple(key for t, (key, _) in enumerate(names) if reading.form.one(f"lcount{n}-{t}"))
        if not counts:
            reading.errors[f"lname{n}"] = NEEDED
        most = reading.whole(f"lmost{n}", 0, MAX_COUNT)
        across = bool(reading.form.one(f"ldates{n}"))
        found.append(SharedLimit(_key(reading, "l", n, name, taken), name, most, counts, across))
    return tuple(found)


ROUTES: list[HTTPRouteHandler] = [options, change]
