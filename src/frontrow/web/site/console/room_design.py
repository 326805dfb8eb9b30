"""The page of a room, as its owner designs it: colour, logo, texts, languages, and where the shop is."""

import asyncio
import base64
from typing import Final

from litestar import Response, get
from litestar.datastructures import UploadFile
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.pictures import media_type_of, prepare_logo
from frontrow.core.errors import InvalidInput, NotFound
from frontrow.waitingroom.console.model.owners import Right
from frontrow.waitingroom.console.model.page_design import MAX_TEXT_CHARS, MAX_TITLE_CHARS, LogoPicture, PageDesign
from frontrow.web.site.console.console import Asked, Console, console_of
from frontrow.web.site.console.form_pages import PageCall, form_page
from frontrow.web.site.console.rooms import show_room
from frontrow.web.site.console.routes import MAX_UPLOAD_BYTES
from frontrow.web.site.languages import LANGUAGES
from frontrow.web.site.routes import Form

_ONE_PICTURE: Final = asyncio.Semaphore(1)  # decoding takes memory: one at a time
FOREVER: Final = "public, max-age=31536000, immutable"


@form_page("/console/rooms/{name:str}/page", right=Right.SET_UP)
async def design_page(call: PageCall) -> Response[bytes]:
    """How the room's page looks."""
    plan, typed = call.console.rooms.plan(call.room), call.typed
    design = plan.design
    return show_room(
        call,
        "console/design.html",
        script="js/console/design.js",
        design=design,
        shop_url=typed.get("shop_url", plan.shop_url),
        colour=typed.get("colour", design.colour),
        texts={
            one: (
                typed.get(f"title_{one}", design.titles.get(one, "")),
                typed.get(f"text_{one}", design.texts.get(one, "")),
            )
            for one in LANGUAGES
        },
        offered=call.form.all("language") if call.form is not None else design.languages,
        names=LANGUAGES,
        most_title=MAX_TITLE_CHARS,
        most_text=MAX_TEXT_CHARS,
    )


@design_page.form("/console/rooms/{name:str}/page", right=Right.SET_UP, most_bytes=MAX_UPLOAD_BYTES)
async def change_design(call: PageCall, form: Form) -> None:
    """Change the page. A logo is decoded, made small and drawn anew before it is kept."""
    old = call.console.rooms.plan(call.room).design
    logo = None if form.one("remove_logo") else await _new_logo(call.request, call.console) or old.logo
    design = PageDesign(
        form.one("colour", 20),
        logo,
        {one: form.one(f"title_{one}", 1_000) for one in LANGUAGES},
        {one: form.one(f"text_{one}", 5_000) for one in LANGUAGES},
        tuple(form.all("language")),
    )
    await call.console.rooms.set_page(call.owner, call.room, design, form.one("shop_url", 600))


async def _new_logo(request: Asked, console: Console) -> LogoPicture | None:
    data = await request.form()
    upload = next((value for _, value in data.multi_items() if isinstance(value, UploadFile) and value.filename), None)
    if upload is None:
        return None
    body = await upload.read(MAX_UPLOAD_BYTES + 1)
    if not body:
        return None
    if len(body) > MAX_UPLOAD_BYTES:
        raise InvalidInput("a logo has at most 1 MB", param="logo")
    async with _ONE_PICTURE:
        picture = await asyncio.to_thread(prepare_logo, base64.b64encode(body))
    await console.rooms.put_picture(picture.hash, picture.body)
    return LogoPicture(picture.hash, picture.width, picture.height)


@get("/pictures/{hash:str}", operation_id="console_picture", include_in_schema=False)
async def picture(request: Asked, hash: FromPath[str]) -> Response[bytes]:
    """A logo, by the hash of its bytes."""
    body = await console_of(request).rooms.picture(hash[:100])
    if body is None:
        raise NotFound("there is no such picture")
    headers = {
        "cache-control": FOREVER,
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'",
    }
    return Response(body, headers=headers, media_type=media_type_of(body))


CONSOLE_ROUTES: list[HTTPRouteHandler] = [design_page.route, change_design, picture]
