"""The form for an event's picture. The page's script puts the file into a field as base64."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.event_editing import EventEdit
from frontrow.boxoffice.events.model.pictures import MAX_UPLOAD_CHARS
from frontrow.core.errors import InvalidInput
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.site.routes import FromForm, action, go_to

Asked = Request[Any, Any, Any]
MAX_FORM_BYTES: Final = MAX_UPLOAD_CHARS * 5 // 4  # some of its signs are escaped


@action(
    "/organiser/events/{event_id:str}/picture",
    "change_picture",
    Access.staff("events:write"),
    most_bytes=MAX_FORM_BYTES,
)
async def change_picture(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Show the picture in the form, or the drawn poster if it asks for that."""
    organise, path = platform.organiser.organise, f"/organiser/events/{event_id}/details"
    try:
        if form.one("remove"):
            await organise.change(editor_of(caller), event_id, EventEdit(picture=""))
        else:
            await organise.put_picture(editor_of(caller), event_id, form.one("picture", MAX_FORM_BYTES))
    except InvalidInput:
        return go_to(f"{path}?picture=refused#picture")
    await platform.box_office.openings.refresh()
    return go_to(f"{path}#picture")


ROUTES: list[HTTPRouteHandler] = [change_picture]
