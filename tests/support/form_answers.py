"""What a browser shows after a form: every form is answered by a redirect, and the page says what came of it."""

from typing import Any

import httpx

from tests.support.browser_headers import BROWSER, FORM


async def submit(
    client: httpx.AsyncClient, path: str, data: dict[str, Any], headers: dict[str, str] | None = None
) -> httpx.Response:
    """Send a form as a browser does. If it is answered by a page that says something (`?told=`), that page; otherwise
    the redirect itself."""
    given = headers or {}
    answer = await client.post(path, data=data, headers=FORM | given)
    where = answer.headers.get("location", "")
    if answer.status_code != 303 or "told=" not in where:
        return answer
    cookies = [given["cookie"]] if "cookie" in given else []
    cookies += [f"{name}={value}" for name, value in answer.cookies.items() if value]
    known = {one.partition("=")[0] for one in "; ".join(cookies).split("; ")}
    cookies += [f"{one.name}={one.value}" for one in client.cookies.jar if one.name not in known]
    return await client.get(where.partition("#")[0], headers=BROWSER | {"cookie": "; ".join(cookies)})
