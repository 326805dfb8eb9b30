"""A browser-like client that is signed in to a served room's console."""

import re
from typing import Any

import httpx

from tests.web.room.room_process import Served

PASSWORD = "a horse in the rain 7"
EMAIL = "ada@example.org"


def printed_secret(served: Served) -> str:
    """The secret of the link that the server printed last."""
    return re.findall(r"/console/begin#(\S+)", (served.folder.parent / "serve.log").read_text())[-1]


OPEN: list[httpx.Client] = []


def client_to(base_url: str, **headers: str) -> httpx.Client:
    """A client that `close_clients` closes."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    OPEN.append(httpx.Client(base_url=base_url, trust_env=False, timeout=20, headers=given))
    return OPEN[-1]


def close_clients() -> None:
    while OPEN:
        OPEN.pop().close()


class ConsoleClient:
    """Sends the forms of the console's pages as a browser does."""

    def __init__(self, base_url: str) -> None:
        self.http = client_to(base_url)
        self.csrf = ""

    def begin(self, secret: str, email: str = EMAIL, password: str = PASSWORD) -> "ConsoleClient":
        """Set a password by a one-time link."""
        given = {"link": secret, "email": email, "name": "Ada", "password": password}
        answer = self.http.post("/console/begin", data=given)
        assert answer.status_code == 303, answer.text
        return self.take_token()

    def sign_in(self, email: str = EMAIL, password: str = PASSWORD) -> httpx.Response:
        return self.http.post("/console/sign-in", data={"email": email, "password": password})

    def take_token(self) -> "ConsoleClient":
        found = re.search(r'name="csrf" value="([^"]+)"', self.http.get("/console/").text)
        assert found is not None
        self.csrf = found[1]
        return self

    def post(self, path: str, **fields: Any) -> httpx.Response:
        return self.http.post(f"/console/{path}", data={"csrf": self.csrf, **fields})

    def get(self, path: str) -> httpx.Response:
        return self.http.get(f"/console/{path}")

    def secret_shown(self, answer: httpx.Response) -> str:
        """The secret that a page shows once."""
        found = re.search(r'id="secret">([^<]+)<', answer.text)
        assert found is not None, answer.text[-2_000:]
        return found[1]


def owner_of(served: Served) -> ConsoleClient:
    """The first owner of a room that was just started."""
    return ConsoleClient(f"http://127.0.0.1:{served.port}").begin(printed_secret(served))
