"""`frontrow room`: serve a room, look at it and steer it over HTTP, make fan codes, check a draw."""

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Annotated, Any

import typer

from frontrow.cli.deployment_options import ConfigOption
from frontrow.core import settings_loader
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.model import draw

app = typer.Typer(help="The waiting room: serve, watch, steer, verify.", no_args_is_help=True, add_completion=False)

Url = Annotated[
    str, typer.Option("--url", envvar="FRONTROW_ROOM_URL", help="where the room is served; empty: as the settings say")
]
Event = Annotated[str, typer.Option("--event", "-e", help="which room; empty: the one at the root")]
Key = Annotated[str, typer.Option("--key", envvar="FRONTROW_ROOM_ORGANISER_KEY", help="the organiser key")]
AsJson = Annotated[bool, typer.Option("--json", help="print the answer as JSON")]
TIMEOUT_S = 10.0


@app.command()
def serve(
    config: ConfigOption = None,
    event: Annotated[list[str] | None, typer.Option("--event", "-e", help="name of a room; may be repeated")] = None,
    store: Annotated[str | None, typer.Option(help="memory:// or a Redis URL")] = None,
    shard: Annotated[list[str] | None, typer.Option(help="a Redis URL; repeated: spread the line over them")] = None,
    host: Annotated[str | None, typer.Option()] = None,
    port: Annotated[int | None, typer.Option(help="0: the system chooses")] = None,
    workers: Annotated[int | None, typer.Option(help="processes; more than one needs Redis")] = None,
    folder: Annotated[Path | None, typer.Option(help="keys and the audit file")] = None,
    capacity: Annotated[int | None, typer.Option(help="people in the shop at once")] = None,
    shop: Annotated[str | None, typer.Option(help="the shop's address, unless it shares the room's")] = None,
    shop_origin: Annotated[
        list[str] | None, typer.Option(help="a shop on another domain, like https://shop.example.org; may be repeated")
    ] = None,
    simulate: Annotated[int, typer.Option(min=0, max=100_000, help="so many made-up visitors queue, to look at")] = 0,
    human: Annotated[str | None, typer.Option(help="none, altcha, turnstile, hcaptcha or recaptcha")] = None,
) -> None:
    """Serve waiting rooms until told to stop. Everything else is set in the file or as FRONTROW_ROOM_…"""
    from frontrow.cli import room_serve  # the other commands need none of the server's libraries
    from frontrow.web.server.room_server import read_settings

    changes: dict[str, Any] = {"events": event or None, "store": store, "host": host, "port": port, "human": human}
    changes |= {"workers": workers, "capacity": capacity, "shop_url": shop, "folder": str(folder) if folder else None}
    changes["shards"] = tuple(shard) if shard else None
    changes["shops"] = tuple(shop_origin) if shop_origin else None
    if simulate and capacity is None:
        changes["capacity"] = max(1, simulate // 10)  # most of them wait
    try:
        room_serve.serve(read_settings(config, changes), simulate)
    except FrontrowError as error:
        sys.exit(f"frontrow room: {error.message}")


@app.command()
def owner(
    config: ConfigOption = None,
    folder: Annotated[Path | None, typer.Option(help="the room's folder; without it as the settings say")] = None,
    email: Annotated[str, typer.Option(help="whose link it is; empty: the first owner's")] = "",
    role: Annotated[str, typer.Option(help="of somebody new: owner, operator or viewer")] = "owner",
) -> None:
    """Print a one-time link to the console: for its first owner, somebody new, or a new password."""
    import asyncio
    from dataclasses import replace

    from frontrow.app.console_serving import first_link, owner_link
    from frontrow.waitingroom.console.model.owners import OwnerRole

    try:
        settings = _read_settings(config)
        settings = replace(settings, folder=str(folder)) if folder else settings
        if role not in list(OwnerRole):
            raise InvalidInput(f"{role!r} is not one of {', '.join(OwnerRole)}", param="role")
        secret = asyncio.run(owner_link(settings, email, OwnerRole(role)) if email else first_link(settings))
    except FrontrowError as error:
        sys.exit(f"frontrow room: {error.message}")
    if secret is None:
        sys.exit("frontrow room: there is an owner already; name an address with --email for a new link")
    base = settings.public_url.rstrip("/") or f"http://{settings.host}:{settings.port}"
    print(f"{base}/console/begin#{secret}")


@app.command("set")
def set_settings(
    changes: Annotated[list[str], typer.Argument(help="settings by name, like min_slide=5 active_windows=2")],
    url: Url = "",
    event: Event = "",
    key: Key = "",
    as_json: AsJson = False,
) -> None:
    """Change settings of a running room by the names they have in the file; seconds where the name says so."""
    try:
        body = changes_of(changes)
    except FrontrowError as error:
        sys.exit(f"frontrow room: {error.message}")
    _show(_ask("PATCH", url, event, key, body), as_json)


_SECONDS = {"interval_s": "interval_us", "grace_s": "grace_us", "catch_up_s": "catch_up_us"}


def changes_of(texts: list[str]) -> dict[str, int]:
    """`interval_s=0.5` as the change that the room understands."""
    body: dict[str, int] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            body[_SECONDS.get(name, name)] = round(float(value) * 1e6) if name in _SECONDS else int(value)
        except (ValueError, OverflowError):
            raise InvalidInput(f"{text!r} is not like min_slide=5 or interval_s=0.5", param=name) from None
    return body


@app.command()
def status(url: Url = "", event: Event = "", key: Key = "", as_json: AsJson = False) -> None:
    """Show a room: phase, line, people inside, who leads."""
    _show(_ask("GET", url, event, key), as_json)


@app.command()
def pause(url: Url = "", event: Event = "", key: Key = "", as_json: AsJson = False) -> None:
    """Let nobody in until `resume`. Nobody loses their place."""
    _show(_ask("PATCH", url, event, key, {"action": "pause"}), as_json)


@app.command()
def resume(url: Url = "", event: Event = "", key: Key = "", as_json: AsJson = False) -> None:
    """Go on after a pause, a hold or a close."""
    _show(_ask("PATCH", url, event, key, {"action": "resume"}), as_json)


@app.command("open")
def open_room(
    url: Url = "",
    event: Event = "",
    key: Key = "",
    beacon: Annotated[str, typer.Option(help="public randomness nobody could know before")] = "",
    as_json: AsJson = False,
) -> None:
    """Open the room; from the pre-queue this draws the order."""
    _show(_ask("PATCH", url, event, key, {"action": "open", "beacon": beacon}), as_json)


@app.command()
def rate(
    per_s: Annotated[int, typer.Argument(min=0, help="people let in per second, at most")],
    url: Url = "",
    event: Event = "",
    key: Key = "",
    as_json: AsJson = False,
) -> None:
    """Change how many people are let in per second."""
    _show(_ask("PATCH", url, event, key, {"rate_per_s": per_s}), as_json)


@app.command("hold-p95")
def hold_p95(
    ms: Annotated[
        int, typer.Argument(min=0, max=600_000, help="the most that the shop's p95 may be; 0: do not hold it")
    ],
    url: Url = "",
    event: Event = "",
    key: Key = "",
    as_json: AsJson = False,
) -> None:
    """Hold the latency that the shop reports: fewer people are let in while it is slow."""
    _show(_ask("PATCH", url, event, key, {"max_p95_ms": ms}), as_json)


@app.command("report-key")
def print_report_key(
    event: Annotated[str, typer.Argument(help="the room")],
    reporter: Annotated[str, typer.Argument(help="name of the reporter, for example shop-1")],
    config: ConfigOption = None,
    folder: Annotated[
        Path | None, typer.Option(help="the room's folder with its keys; without it as the settings say")
    ] = None,
) -> None:
    """Print the key with which one server of the shop signs its reports."""
    from frontrow.waitingroom.credentials.report_keys import report_key
    from frontrow.waitingroom.credentials.room_keys import RoomKeys

    try:
        keys = RoomKeys.load(folder or _read_settings(config).folder)
        print(report_key(keys.master_secret, event, reporter))
    except FrontrowError as error:
        sys.exit(f"frontrow room: {error.message}")


@app.command("show-inflow")
def show_inflow(
    out: Annotated[Path | None, typer.Option(help="write a chart here (.svg, .png, .pdf)")] = None,
) -> None:
    """Simulate shops that slow down under load, and the room that holds their p95: a table, and a chart with --out."""
    from rich.console import Console

    from frontrow.rehearsal import shop_inflow

    runs = [shop_inflow.run_shop(shop) for shop in shop_inflow.SHOPS]
    Console(width=int(os.environ.get("COLUMNS", "100"))).print(shop_inflow.build_table(runs))
    if out is not None:
        try:
            shop_inflow.draw_chart(out, runs)
        except FrontrowError as error:
            sys.exit(f"frontrow room: {error.message}")


@app.command("verify-draw")
def verify_draw(
    record: Annotated[str, typer.Argument(help="the published record: a file, a URL (…/draw) or - for standard input")],
    arrival: Annotated[int, typer.Argument(min=1, help="the number somebody arrived with (the place's `sub`)")],
    lane: Annotated[str, typer.Option(help="the lane's name")] = "general",
    commitment: Annotated[str, typer.Option(help="the commitment seen before the opening")] = "",
    position: Annotated[int | None, typer.Option(help="the position that was given; wrong: exit 1")] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute a drawn position from the published record alone."""
    try:
        found = draw.verify(json.loads(_read(record)), lane, arrival, commitment or None)
    except (FrontrowError, ValueError) as error:
        sys.exit(f"frontrow room: {error}")
    right = position is None or position == found
    drawn = {"lane": lane, "arrival": arrival, "position": found, "as_given": right}
    print(json.dumps(drawn) if as_json else f"arrival {arrival} in lane {lane} was drawn position {found}")
    if not right:
        sys.exit(f"frontrow room: position {position} is not what the record says")


codes = typer.Typer(help="Verified-Fan codes: make signed ones, import the organiser's own.", no_args_is_help=True)
app.add_typer(codes, name="codes")
LINES_A_CALL = 5_000


@codes.command("import")
def import_codes(
    file: Annotated[Path, typer.Argument(help="CSV with a header line: code,lane")],
    url: Url = "",
    event: Event = "",
    key: Key = "",
) -> None:
    """Give a running room an organiser's own codes; importing a file again is harmless."""
    lines = _read(str(file)).decode("utf-8", "replace").splitlines()
    count = 0
    for start in range(1, max(2, len(lines)), LINES_A_CALL):
        part = "\n".join([*lines[:1], *lines[start : start + LINES_A_CALL]])
        count += int(_ask("POST", url, event, key, part, path="codes")["imported"])
    print(f"{count} codes imported")


@codes.command("make")
def make_codes(
    event: Annotated[str, typer.Argument(help="the room the codes are for")],
    count: Annotated[int, typer.Argument(min=1, max=10_000_000, help="how many")],
    config: ConfigOption = None,
    folder: Annotated[
        Path | None, typer.Option(help="the room's folder with its keys; without it as the settings say")
    ] = None,
    lane: Annotated[int, typer.Option(min=0, max=3, help="number of the lane they lead to")] = 1,
    start: Annotated[int, typer.Option(min=0, help="number of the first code")] = 0,
) -> None:
    """Print signed, single-use Verified-Fan codes, one per line."""
    from frontrow.waitingroom.credentials.fan_codes import Codes
    from frontrow.waitingroom.credentials.room_keys import RoomKeys

    try:
        keys = RoomKeys.load(folder or _read_settings(config).folder)
    except FrontrowError as error:
        sys.exit(f"frontrow room: {error.message}")
    for code in Codes(keys.master_secret).make(event, lane, range(start, start + count)):
        print(code)


def _read(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read(1 << 20)
    if source.startswith(("http://", "https://")):
        return _fetch(urllib.request.Request(source))  # noqa: S310  # the scheme was just checked
    try:
        return Path(source).read_bytes()
    except OSError as error:
        sys.exit(f"frontrow room: {source}: {error.strerror}")


def _ask(
    method: str, url: str, event: str, key: str, body: dict[str, Any] | str | None = None, path: str = "room"
) -> dict[str, Any]:
    if not url:
        url, key = _find_room(key)
    if not url.startswith(("http://", "https://")):
        sys.exit(f"frontrow room: --url must start with http:// or https://, not {url!r}")
    path = f"/v1/events/{event}/room/{path}" if event else f"/{path}"
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else None
    asked = urllib.request.Request(url.rstrip("/") + path, content, headers, method=method)  # noqa: S310
    answer: dict[str, Any] = json.loads(_fetch(asked))
    return answer


def _find_room(key: str) -> tuple[str, str]:
    """Where the settings say that the room is served, and its organiser key. A given key comes first."""
    try:
        settings = _read_settings(os.environ.get("FRONTROW_CONFIG"))
    except FrontrowError as error:
        sys.exit(f"frontrow room: {error.message}")
    return f"http://{settings.host}:{settings.port}", key or settings.organiser_key


def _read_settings(config: str | None) -> RoomSettings:
    return settings_loader.load(RoomSettings, "room", tables=settings_loader.read_tables(config))


def _fetch(request: urllib.request.Request) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}) if _is_local(request) else _no_change())
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read(1 << 20)
            return content
    except urllib.error.HTTPError as error:
        try:
            with error:  # it holds the connection
                detail = json.loads(error.read(1 << 16)).get("detail", "")
        except ValueError:
            detail = ""
        sys.exit(f"frontrow room: {error.code} {detail or error.reason}")
    except OSError as error:
        sys.exit(f"frontrow room: nobody answers at {request.full_url}: {error}")


def _is_local(request: urllib.request.Request) -> bool:
    return (request.host or "").split(":")[0] in ("127.0.0.1", "localhost")


def _no_change() -> urllib.request.BaseHandler:
    return urllib.request.ProxyHandler()


def _show(view: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(view))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{view['event']}: {view['phase']}", show_header=False)
    rows = ("waiting", "active", "capacity", "unclaimed", "rate_per_s", "slide_no", "epoch", "leader", "message")
    for name in rows:
        table.add_row(name, str(view[name]))
    for lane in view["lanes"]:
        table.add_row(f"lane {lane['name']}", f"issued {lane['issued']}, called to {lane['hi']}, over to {lane['lo']}")
    Console(width=int(os.environ.get("COLUMNS", "80"))).print(table)
