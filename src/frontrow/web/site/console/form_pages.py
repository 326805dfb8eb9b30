"""A page of the console together with its forms: a form that is refused shows its page again, with why and what was
typed; one that is accepted leads back to the page.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.console.access import SignedInOwner
from frontrow.waitingroom.console.model.owners import Right
from frontrow.web.site.console.console import Asked, Console
from frontrow.web.site.console.refusals import sentence_of
from frontrow.web.site.console.render import render
from frontrow.web.site.console.routes import FromConsole, FromForm, FromOwner, action, go_to, page
from frontrow.web.site.routes import MAX_FORM_BYTES, Form


@dataclass(frozen=True, kw_only=True)
class PageCall:
    """Who asks for a page, and of what. After a refused form: why it was refused, and the form itself."""

    request: Asked
    console: Console
    owner: SignedInOwner
    problem: FrontrowError | None = None
    form: Form | None = None

    @property
    def room(self) -> str:
        """The name of the room that the page is about."""
        return self.path("name")

    def path(self, name: str) -> str:
        """A part of the page's path."""
        return str(self.request.path_params[name])

    @property
    def typed(self) -> dict[str, str]:
        """What stood in the refused form's fields."""
        return self.form.first() if self.form is not None else {}

    def render(self, template: str, **context: Any) -> Response[bytes]:
        """The page. It says why the form was refused, if one was."""
        return render(
            self.request,
            template,
            self.owner,
            status=200 if self.problem is None else self.problem.http_status,
            **{"problem": sentence_of(self.problem) if self.problem is not None else ""} | context,
        )


Show = Callable[..., Awaitable[Response[bytes]]]
Change = Callable[[PageCall, Form], Awaitable[Response[bytes] | None]]


class FormPage:
    """A page and the forms on it. `show` draws the page; further arguments of `show` have defaults."""

    def __init__(self, path: str, show: Show, right: Right) -> None:
        self.show, self._path = show, path

        async def handle(request: Asked, console: FromConsole, owner: FromOwner) -> Response[bytes]:
            return await show(PageCall(request=request, console=console, owner=owner))

        self.route = page(path, right=right)(_named_as(show, handle))

    def form(
        self, path: str, *, right: Right, most_bytes: int = MAX_FORM_BYTES
    ) -> Callable[[Change], HTTPRouteHandler]:
        """One of the page's forms. Its handler makes the change; None leads back to the page."""

        def declare(change: Change) -> HTTPRouteHandler:
            async def handle(request: Asked, console: FromConsole, owner: FromOwner, form: FromForm) -> Response[bytes]:
                call = PageCall(request=request, console=console, owner=owner)
                try:
                    answer = await change(call, form)
                except FrontrowError as error:
                    if error.http_status >= 500:
                        raise
                    return await self.show(replace(call, problem=error, form=form))
                return answer or go_to(f"{self._address(call)}?done=saved")

            return action(path, right=right, most_bytes=most_bytes)(_named_as(change, handle))

        return declare

    def _address(self, call: PageCall) -> str:
        return self._path.replace("{name:str}", str(call.request.path_params.get("name", "")))


def form_page(path: str, *, right: Right = Right.SEE) -> Callable[[Show], FormPage]:
    """Declares a page, with or without forms. The room's name in `path` is `{name:str}`."""
    return lambda show: FormPage(path, show, right)


def _named_as(subject: Callable[..., Any], handle: Callable[..., Any]) -> Callable[..., Any]:
    """Routes are named after the functions that are written for them."""
    handle.__name__, handle.__doc__ = subject.__name__, subject.__doc__
    return handle
