"""The picture of an event: upload it, remove it."""

from typing import Annotated

import msgspec
from litestar import delete, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.events.event_editing import EventEdit
from frontrow.boxoffice.events.model.pictures import MAX_UPLOAD_CHARS
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform

PATH = "/v1/organiser/events/{event_id:str}/picture"
MAX_BODY_BYTES = MAX_UPLOAD_CHARS + 1_000


class PictureBody(msgspec.Struct, forbid_unknown_fields=True):
    """A JPEG, PNG or WebP file in base64."""

    picture: Annotated[str, msgspec.Meta(max_length=MAX_UPLOAD_CHARS, examples=["iVBORw0KGgo="])]


class PictureView(msgspec.Struct):
    """Where the picture is shown from; empty: the event has a drawn poster."""

    url: str


@put(
    PATH,
    operation_id="put_picture",
    summary="Upload the picture of an event; it is cropped to 1200 by 630 and loses its metadata",
    request_max_body_size=MAX_BODY_BYTES,
    opt={"access": Access.staff("events:write"), "problems": (404, 409, 413)},
)
async def put_picture(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[PictureBody]
) -> PictureView:
    changed = await platform.organiser.organise.put_picture(editor_of(caller), event_id, data.picture)
    await platform.box_office.openings.refresh()
    return PictureView(f"/pictures/{changed.event.picture}")


@delete(
    PATH,
    operation_id="remove_picture",
    summary="Show the drawn poster again",
    status_code=200,
    opt={"access": Access.staff("events:write"), "problems": (404, 409)},
)
async def remove_picture(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> PictureView:
    await platform.organiser.organise.change(editor_of(caller), event_id, EventEdit(picture=""))
    await platform.box_office.openings.refresh()
    return PictureView("")


ROUTES: list[HTTPRouteHandler] = [put_picture, remove_picture]
