"""The rooms of the console: the list, one room while it runs, its schedule, rules and page, how to connect a shop."""

import secrets
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.console.model.owners import Right
from frontrow.waitingroom.console.model.protection import METHODS, Crawler, ProtectionRules, key_hash
from frontrow.waitingroom.console.model.room_plans import RoomPlan
from frontrow.waitingroom.console.model.schedules import Schedule, ScheduleStep
from frontrow.waitingroom.model.config import MAX_MESSAGE_CHARS, Phase, RoomConfig
from frontrow.waitingroom.model.results import RoomView
from frontrow.web.http.messages import encode_json
from frontrow.web.site.console.console import Asked, Console
from frontrow.web.site.console.form_pages import PageCall, form_page
from frontrow.web.site.console.routes import HOME, FromConsole, FromOwner, go_to, page
from frontrow.web.site.languages import N_
from frontrow.web.site.routes import Form

PHASE_WORDS: Final = {
    Phase.PREQUEUE: N_("Pre-queue"),
    Phase.OPEN: N_("Open"),
    Phase.PAUSED: N_("Paused"),
    Phase.QUEUE_ALL: N_("Everyone waits"),
    Phase.CLOSED: N_("Closed"),
}
STEP_WORDS: Final = {
    ScheduleStep.PREQUEUE: N_("The pre-queue begins"),
    ScheduleStep.OPEN: N_("The room opens"),
    ScheduleStep.CLOSE: N_("The room closes"),
}
# setting -> what it is called, what it does, how many of the setting's units one of the form is, lowest, highest
FIELDS: Final = {
    "capacity": (N_("People in the shop at once"), N_("Nobody is let in above this number."), 1, 0, 10**9),
    "rate_per_s": (N_("People let in per second, at most"), N_("The shop’s own limit. 0 lets nobody in."), 1, 0, 10**9),
    "window_size": (N_("People per window"), N_("So many are let in together, once per interval."), 1, 1, 10**9),
    "interval_us": (N_("Interval in milliseconds"), N_("How often a window is let in."), 1_000, 1, 3_600_000),
    "min_slide": (
        N_("Smallest window"),
        N_("While fewer people wait, nobody is let in. The same as the window: whole windows only."),
        1,
        1,
        10**9,
    ),
    "active_windows": (
        N_("Active windows"),
        N_(
            "So many windows can enter at the same time; 0: by time. With one, a turn ends when the next window is called, so use 2 or more."  # noqa: E501
        ),
        1,
        0,
        64,
    ),
    "grace_us": (
        N_("Seconds to use a turn"),
        N_("Without active windows: a turn that is not used ends after this time."),
        1_000_000,
        1,
        86_400,
    ),
    "catch_up_us": (
        N_("Seconds to make up for"),
        N_("After an outage at most the windows of so many seconds are let in at once."),
        1_000_000,
        0,
        3_600,
    ),
    "pass_ttl_s": (
        N_("Seconds in the shop"),
        N_("A visit ends after this time unless the shop renews it."),
        1,
        1,
        86_400,
    ),
    "idle_s": (
        N_("Seconds without activity"),
        N_("A visit ends after this time without a request, if others wait; 0: never."),
        1,
        0,
        86_400,
    ),
    "depth_cap": (
        N_("People waiting, at most"),
        N_("More get a page that asks them to come back; 0: no limit."),
        1,
        0,
        10**9,
    ),
}
AT_FIRST: Final = frozenset({"capacity", "rate_per_s", "pass_ttl_s", "depth_cap"})  # what most owners ever change


def now_fields(view: RoomView) -> dict[str, Any]:
    """What the page of a room shows and renews every few seconds."""
    state = view.state
    return {
        "phase": state.phase.value,
        "waiting": view.waiting,
        "active": state.active,
        "capacity": state.config.capacity,
        "admitted": state.admitted,
        "unclaimed": view.unclaimed,
        "per_minute": round(sum(view.rates_milli) * 60 / 1000),
    }


@form_page(HOME)
async def rooms_page(call: PageCall) -> Response[bytes]:
    """All rooms."""
    plans = call.console.rooms.plans
    rows = [(plan, _view(call.console, plan.name)) for plan in sorted(plans.values(), key=lambda one: one.name)]
    given = {"name": "", "title": "", "shop_url": "", "capacity": "1000"}
    if call.form is not None:
        given = {name: call.form.one(name, 500) for name in given}
    return call.render(
        "console/rooms.html",
        rows=[(plan, now_fields(view), title_of(plan), view.state.phase) for plan, view in rows if view is not None],
        phases=PHASE_WORDS,
        v=given,
    )


def title_of(plan: RoomPlan) -> str:
    """What people call the room."""
    return plan.design.title("en") or plan.name


def _view(console: Console, name: str) -> RoomView | None:
    return console.room.control.view(name) if name in console.room.cache.rooms else None


@rooms_page.form("/console/rooms", right=Right.SET_UP)
async def create_room(call: PageCall, form: Form) -> Response[bytes]:
    """A new room."""
    plan = await call.console.rooms.create(
        call.owner,
        form.one("name", 500),
        title=form.one("title", 500),
        shop_url=form.one("shop_url", 500),
        settings={"capacity": _number(form, "capacity", 1, 0, 10**9)},
    )
    return go_to(f"/console/rooms/{plan.name}/connect?done=created")


def _number(form: Form, name: str, times: int, low: int, high: int) -> int:
    text = form.one(name, 20)
    try:
        number = round(float(text) * times) if times > 1 else int(text)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name} is a number", param=name) from None
    if not low * times <= number <= high * times:
        raise InvalidInput(f"{name} is from {low} to {high}", param=name)
    return number


# -- one room ----------------------------------------------------------------------------------------------------------


def show_room(call: PageCall, template: str, **context: Any) -> Response[bytes]:
    """A page about one room."""
    plan, view = call.console.rooms.plan(call.room), call.console.room.control.view(call.room)
    return call.render(
        template,
        plan=plan,
        title=title_of(plan),
        view=view,
        state=view.state,
        now=now_fields(view),
        phase=PHASE_WORDS[view.state.phase],
        phases=PHASE_WORDS,
        wrong=(call.problem.param or "") if call.problem is not None else "",
        of_room=call.room,
        **context,
    )


@form_page("/console/rooms/{name:str}")
async def room_page(call: PageCall) -> Response[bytes]:
    """The room while it runs."""
    plan = call.console.rooms.plan(call.room)
    config = call.console.room.control.view(call.room).state.config
    values = {field: call.typed.get(field, shown_setting(config, field)) for field in FIELDS}
    return show_room(
        call,
        "console/room.html",
        script="js/console/room.js",
        fields=FIELDS,
        at_first=AT_FIRST,
        values=values,
        message=call.typed.get("message", config.message),
        most_message=MAX_MESSAGE_CHARS,
        steps=[(STEP_WORDS[step], at_us, plan.is_done(step, at_us)) for at_us, step in plan.schedule.steps()],
    )


def shown_setting(config: RoomConfig, name: str) -> str:
    """A setting as its form shows it."""
    times = FIELDS[name][2]
    return f"{getattr(config, name) / times:g}" if times > 1 else str(getattr(config, name))


@page("/console/rooms/{name:str}/now")
async def room_now(request: Asked, console: FromConsole, owner: FromOwner, name: FromPath[str]) -> Response[bytes]:
    """The figures of this moment, for the page's script."""
    console.rooms.plan(name)
    body = encode_json(now_fields(console.room.control.view(name)))
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(body, headers=headers, media_type="application/json")


@room_page.form("/console/rooms/{name:str}/act", right=Right.RUN)
async def act_on_room(call: PageCall, form: Form) -> None:
    """Open, pause, resume, hold everybody, close."""
    call.console.rooms.plan(call.room)
    await call.console.rooms.act(call.owner, call.room, form.one("action", 20))


@room_page.form("/console/rooms/{name:str}/settings", right=Right.RUN)
async def change_settings(call: PageCall, form: Form) -> None:
    """Change the settings that differ."""
    call.console.rooms.plan(call.room)
    config = call.console.room.control.view(call.room).state.config
    given = {
        field: _number(form, field, times, low, high)
        for field, (_label, _hint, times, low, high) in FIELDS.items()
        if form.one(field, 20)
    }
    changes = {field: value for field, value in given.items() if getattr(config, field) != value}
    if changes.get("pass_ttl_s", 0) > config.max_stay_s:
        changes["max_stay_s"] = changes["pass_ttl_s"]
    if changes:
        await call.console.rooms.configure(call.owner, call.room, changes)


@room_page.form("/console/rooms/{name:str}/message", right=Right.RUN)
async def change_message(call: PageCall, form: Form) -> None:
    """The owner's words on the room's page."""
    call.console.rooms.plan(call.room)
    await call.console.rooms.set_message(call.owner, call.room, " ".join(form.one("message", 1_000).split()))


@room_page.form("/console/rooms/{name:str}/delete", right=Right.SET_UP)
async def delete_room(call: PageCall, form: Form) -> Response[bytes]:
    """Delete the room, after its name was typed."""
    call.console.rooms.plan(call.room)
    if form.one("confirm") != call.room:
        raise InvalidInput("type the room's name", param="confirm")
    await call.console.rooms.delete(call.owner, call.room)
    return go_to(f"{HOME}?done=deleted")


# -- schedule ----------------------------------------------------------------------------------------------------------

_TIMES: Final = ("prequeue_at", "opens_at", "closes_at")


@form_page("/console/rooms/{name:str}/schedule")
async def schedule_page(call: PageCall) -> Response[bytes]:
    """When the room opens and closes by itself."""
    plan = call.console.rooms.plan(call.room)
    values = {field: local_text(getattr(plan.schedule, f"{field}_us"), plan.zone) for field in _TIMES}
    values |= {"zone": plan.zone} | call.typed
    made = [
        (STEP_WORDS[one.step], one.at_us, one.why_not)
        for one in sorted(plan.steps, key=lambda one: one.at_us)
        if one.done
    ]
    return show_room(call, "console/schedule.html", v=values, zones=_zones(), made=made)


def _zones() -> list[str]:
    return sorted(one for one in available_timezones() if "/" in one or one == "UTC")


def local_text(at_us: int, zone: str) -> str:
    """A moment as a form's field has it, by the clock of this zone."""
    if not at_us:
        return ""
    moment = datetime.fromtimestamp(at_us / 1_000_000, UTC).astimezone(ZoneInfo(zone))
    return moment.strftime("%Y-%m-%dT%H:%M:%S" if moment.second else "%Y-%m-%dT%H:%M")


def moment_us(text: str, zone: str, param: str) -> int:
    """The moment of a form's field; 0 for an empty one."""
    if not text:
        return 0
    try:
        local = datetime.fromisoformat(text)
        if local.tzinfo is not None or not 1971 <= local.year <= 3000:
            raise ValueError
    except ValueError:
        raise InvalidInput("this is not a time", param=param) from None
    return int(local.replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1_000_000


@schedule_page.form("/console/rooms/{name:str}/schedule", right=Right.SET_UP)
async def change_schedule(call: PageCall, form: Form) -> None:
    """Change the schedule."""
    call.console.rooms.plan(call.room)
    zone = form.one("zone", 60) or "UTC"
    if zone not in available_timezones():
        raise InvalidInput("there is no such time zone", param="zone")
    times = [moment_us(form.one(field, 40), zone, field) for field in _TIMES]
    await call.console.rooms.set_schedule(call.owner, call.room, Schedule(*times), zone)


# -- rules -------------------------------------------------------------------------------------------------------------


@form_page("/console/rooms/{name:str}/rules", right=Right.SET_UP)
async def rules_page(call: PageCall, secret: str = "") -> Response[bytes]:
    """What of the shop is protected, and who comes in without a place. `secret` is a new key's, shown once."""
    rules = call.console.rooms.plan(call.room).rules
    values = {field: "\n".join(getattr(rules, field)) for field in ("hosts", "paths", "open_paths", "networks")}
    values["crawlers"] = "\n".join(f"{one.agent} {' '.join(one.networks)}" for one in rules.crawlers)
    return show_room(
        call,
        "console/rules.html",
        v=values | call.typed,
        methods=METHODS,
        chosen=rules.methods if call.form is None else tuple(call.form.all("method")),
        keys=rules.key_hashes,
        secret=secret,
    )


def _lines(form: Form, name: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in form.one(name, 40_000).splitlines() if line.strip())


def _crawler(line: str) -> Crawler:
    """`Examplebot 192.0.2.0/24 2001:db8::/32`: a part of the user agent, then networks."""
    words = line.split()
    networks = [word for word in words if "/" in word or word.replace(".", "").isdigit() or ":" in word]
    agent = " ".join(word for word in words if word not in networks)
    return Crawler(agent, tuple(networks))


@rules_page.form("/console/rooms/{name:str}/rules", right=Right.SET_UP)
async def change_rules(call: PageCall, form: Form) -> Response[bytes] | None:
    """Change the rules; or make a bypass key, or take one away."""
    rooms, owner, name = call.console.rooms, call.owner, call.room
    rules = rooms.plan(name).rules
    if form.one("make_key"):
        secret = f"frb_{secrets.token_urlsafe(24)}"
        wanted = msgspec.structs.replace(rules, key_hashes=(*rules.key_hashes, key_hash(secret)))
        await rooms.set_rules(owner, name, wanted)
        return await rules_page.show(call, secret)
    if gone := form.one("drop_key", 100):
        left = tuple(one for one in rules.key_hashes if one != gone)
        await rooms.set_rules(owner, name, msgspec.structs.replace(rules, key_hashes=left))
    else:
        lists = {field: _lines(form, field) for field in ("hosts", "paths", "open_paths", "networks")}
        crawlers = tuple(_crawler(line) for line in _lines(form, "crawlers"))
        methods = tuple(form.all("method"))
        wanted = ProtectionRules(**lists, methods=methods, key_hashes=rules.key_hashes, crawlers=crawlers)
        await rooms.set_rules(owner, name, wanted)
    return None


# -- connecting a shop -------------------------------------------------------------------------------------------------


@form_page("/console/rooms/{name:str}/connect")
async def connect_page(call: PageCall) -> Response[bytes]:
    """What to write where, with this room's own names in it."""
    plan, settings = call.console.rooms.plan(call.room), call.console.settings
    behind = urlsplit(plan.shop_url or settings.shop_url).netloc or "127.0.0.1:8000"
    address = f"{settings.host}:{settings.port}"
    public = settings.public_url.rstrip("/") or f"http://{address}"
    return show_room(call, "console/connect.html", address=address, behind=behind, public=public)


CONSOLE_ROUTES: list[HTTPRouteHandler] = [
    rooms_page.route,
    create_room,
    room_page.route,
    room_now,
    act_on_room,
    change_settings,
    change_message,
    delete_room,
    schedule_page.route,
    change_schedule,
    rules_page.route,
    change_rules,
    connect_page.route,
]
