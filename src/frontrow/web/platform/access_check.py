"""Whether a caller may use a route, and from which address the caller came."""

from typing import Any

from litestar import Request
from litestar.handlers import BaseRouteHandler

from frontrow.boxoffice.people.model.people import NotAllowed, SignInNeeded
from frontrow.boxoffice.request_reads import request_reads
from frontrow.core.errors import NotFound
from frontrow.web.http.access import Access, Caller, Connection, method_of, need_permission
from frontrow.web.http.csrf import JSON_ONLY, SAFE_METHODS
from frontrow.web.platform.platform import Platform


def client_ip(platform: Platform, connection: Connection) -> str:
    """The caller's address for limits. `X-Forwarded-For` is read only from trusted proxies."""
    peer = connection.scope.get("client")
    forwarded = connection.headers.getall("x-forwarded-for", [])
    return platform.server.limiter.ip_of(peer[0] if peer else "", forwarded)


async def choose_reads(platform: Platform, caller: Caller, method: str) -> None:
    """Organisers who change something, or just have, read the newest; everybody else may read from a replica."""
    changes, reads = platform.server.changes, request_reads.get()
    if changes is None or reads is None or not caller.organiser_id:
        return
    reads.needs_newest = method not in SAFE_METHODS or await changes.has(caller.organiser_id)
    reads.organiser_id = caller.organiser_id if method not in SAFE_METHODS else ""


async def check_access(connection: Connection, handler: BaseRouteHandler) -> None:
    """The guard of every route: reads the caller, compares with the route, keeps the caller for the handler."""
    platform: Platform = connection.app.state.platform
    method = method_of(connection)
    if method == "OPTIONS":  # the framework's own: lists the methods of a path, nothing else
        return
    access: Access = handler.opt["access"]
    caller = await platform.callers.identify(method, connection.headers, handler.opt.get("accepts", JSON_ONLY))
    connection.state.caller = caller
    await choose_reads(platform, caller, method)
    match access.kind:
        case "public" | "owner":  # the handler loads the object and checks its owner
            return
        case "pass":
            platform.callers.need_pass(caller, connection.path_params["event_id"])
        case "session":
            if caller.session is None:
                raise SignInNeeded("sign in first")
        case "fan":
            if caller.kind != "fan":
                raise SignInNeeded("sign in first")
        case "staff":
            need_permission(caller, access.permission)
        case _:  # an unknown kind allows nothing
            raise NotAllowed("this route is closed")


async def proven_email(platform: Platform, caller: Caller) -> str:
    """The address of the signed-in fan; empty for guests and strangers."""
    if caller.kind != "fan":
        return ""
    return await platform.people.fans.proven_address(caller.id)


def check_shown(request: Request[Any, Any, Any]) -> None:
    """Refuse if this server keeps its document to itself."""
    if not request.app.state.platform.settings.server.docs:
        raise NotFound("this server does not show its document (server.docs)")
