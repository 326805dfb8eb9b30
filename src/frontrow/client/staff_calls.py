"""The API v1 operations of organisers and gate staff, as calls. The client needs a session or an API key.

Request and response bodies of the organiser's routes are plain dicts, as the OpenAPI document describes them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from frontrow.client import responses as shapes
from frontrow.client.call_engine import Call, path

OWN, DOOR = "/v1/organiser/events/{}", "/v1/door/events/{}"
Json = dict[str, Any]
Body = Mapping[str, Any]


def create_venue(venue: Body) -> Call[Json]:
    return Call("POST", "/v1/organiser/venues", Json, body=venue)


def list_venues() -> Call[Json]:
    return Call("GET", "/v1/organiser/venues", Json)


def create_event(event: Body) -> Call[Json]:
    return Call("POST", "/v1/organiser/events", Json, body=event)


def list_own_events() -> Call[Json]:
    return Call("GET", "/v1/organiser/events", Json)


def get_own_event(event: str) -> Call[Json]:
    return Call("GET", path(OWN, event), Json)


def change_event(event: str, changes: Body, *, if_match: str = "") -> Call[Json]:
    """`if_match` is the version (ETag) that the changes are based on."""
    return Call("PATCH", path(OWN, event), Json, body=changes, headers={"if-match": if_match} if if_match else {})


def publish_event(event: str) -> Call[Json]:
    return Call("POST", path(OWN + "/publish", event), Json)


def pause_sale(event: str) -> Call[Json]:
    return Call("POST", path(OWN + "/pause", event), Json)


def resume_sale(event: str) -> Call[Json]:
    return Call("POST", path(OWN + "/resume", event), Json)


def cancel_event(event: str, reason: Body) -> Call[Json]:
    return Call("POST", path(OWN + "/cancel", event), Json, body=reason)


def get_figures(event: str) -> Call[Json]:
    return Call("GET", path(OWN + "/figures", event), Json)


def figures_csv(event: str) -> Call[bytes]:
    return Call("GET", path(OWN + "/figures.csv", event), bytes)


def search_bookings(event: str, **query: Any) -> Call[Json]:
    return Call("GET", path(OWN + "/bookings", event), Json, query=query)


def refund_booking(event: str, booking: str, refund: Body) -> Call[Json]:
    return Call("POST", path(OWN + "/bookings/{}/refunds", event, booking), Json, body=refund)


def retry_refund(event: str, booking: str, refund: str) -> Call[Json]:
    """Retry a refund that failed."""
    return Call("POST", path(OWN + "/bookings/{}/refunds/{}/retry", event, booking, refund), Json)


def transfer_ticket(event: str, booking: str, transfer: Body) -> Call[Json]:
    """Send a ticket to somebody else for whoever has it now."""
    return Call("POST", path(OWN + "/bookings/{}/transfers", event, booking), Json, body=transfer)


def get_room(event: str) -> Call[Json]:
    return Call("GET", path(OWN + "/room", event), Json)


def steer_room(event: str, changes: Body) -> Call[Json]:
    """Open, pause, resume; rate, capacity, message."""
    return Call("PATCH", path(OWN + "/room", event), Json, body=changes)


def create_webhook(webhook: Body) -> Call[Json]:
    return Call("POST", "/v1/organiser/webhooks", Json, body=webhook)


def list_team() -> Call[Json]:
    return Call("GET", "/v1/organiser/team", Json)


def make_api_key(key: Body) -> Call[Json]:
    return Call("POST", "/v1/organiser/keys", Json, body=key)


def door_bundle(event: str) -> Call[Json]:
    """The tickets and keys that a gate needs to check tickets offline."""
    return Call("GET", path(DOOR + "/bundle", event), Json)


def scan(event: str, code: str, gate: str, *, scan_id: str | None = None) -> Call[shapes.Scan]:
    body: Json = {"code": code, "gate": gate} | ({} if scan_id is None else {"scan": scan_id})
    return Call("POST", path(DOOR + "/scan", event), shapes.Scan, body=body)


def sync_scans(event: str, scans: Sequence[Body]) -> Call[Json]:
    return Call("POST", path(DOOR + "/sync", event), Json, body={"scans": list(scans)})


def door_counts(event: str) -> Call[shapes.DoorCounts]:
    return Call("GET", path(DOOR + "/counts", event), shapes.DoorCounts)
