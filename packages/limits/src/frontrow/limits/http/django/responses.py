"""Responses to requests that a limit refuses, and the headers of others."""

from django.http import HttpRequest, HttpResponse

from frontrow.limits.http.headers import Field, as_text
from frontrow.limits.http.refusal_responses import Response, missing_client_response, own_response, refusal_response
from frontrow.limits.http.request_limits import Charge, MissingClient


def refuse(request: HttpRequest, charge: Charge, fields: list[Field]) -> HttpResponse:
    """The response to a refused request, with the project's own body if it has one."""
    response = refusal_response(charge.decision, fields)
    on_refused = charge.limits.on_refused
    made = on_refused(request, charge.decision) if on_refused is not None else None
    if isinstance(made, HttpResponse):
        write_fields(request, made, response[1][2:])
        return made
    return _http_response(own_response(made, response))


def refuse_nameless(request: HttpRequest, error: MissingClient) -> HttpResponse:
    """400: the request does not say who it is from."""
    return _http_response(missing_client_response(error))


def _http_response(response: Response) -> HttpResponse:
    status, fields, body = response
    return HttpResponse(body, status=status, headers=dict(as_text(fields)))


def write_fields(request: HttpRequest, response: HttpResponse, fields: list[Field]) -> None:
    """Put headers into a response."""
    headers = response.headers
    for name, value in as_text(fields):
        headers[name] = value
