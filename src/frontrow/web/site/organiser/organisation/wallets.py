"""The organiser's page about wallets: upload the keys from Apple and Google, see whose they are, remove them.

The page's script puts the chosen files into fields as base64.
"""

import base64
import binascii
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.tickets.model.wallets import Wallet
from frontrow.boxoffice.tickets.wallet_keys import MAX_FILE_BYTES, AppleKeysGiven, GoogleKeysGiven
from frontrow.core.errors import InvalidInput
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import Form, FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
WALLETS: Final = "/organiser/wallets"
WRITES: Final = Access.staff("events:write")
MAX_FIELD_CHARS: Final = MAX_FILE_BYTES * 4 // 3 + 4
MAX_FORM_BYTES: Final = 6 * MAX_FILE_BYTES  # three files as base64, and its signs escaped
TOO_LARGE: Final = N_("This file is not a certificate or key: it is too large.")
REFUSED: Final = {
    "unreadable": N_("This certificate could not be read. Choose a .p12, .pem or .cer file."),
    "wrong_password": N_("The password does not open this file."),
    "no_key": N_("The private key is missing. Choose a .p12 file, or the key as a .pem file."),
    "bad_key": N_("This private key could not be used. It must be RSA with 2048 to 4096 bits, or P-256."),
    "other_key": N_("This key does not belong to the certificate."),
    "no_pass_type": N_("This is not a certificate for a pass type."),
    "other_pass_type": N_("This certificate is for another pass type: {found}."),
    "other_team": N_("This certificate belongs to another team: {found}."),
    "expired": N_("This certificate has expired ({found})."),
    "not_yet_valid": N_("This certificate is not valid yet ({found})."),
    "no_intermediate": N_("Apple's intermediate certificate is missing ({found})."),
    "bad_intermediate": N_("Apple's intermediate certificate could not be read. Choose a .cer or .pem file."),
    "other_intermediate": N_("This is another intermediate certificate. You need the one of {found}."),
    "intermediate_expired": N_("This intermediate certificate has expired ({found})."),
    "bad_issuer_id": N_("An issuer ID is a number."),
    "bad_service_account": N_("This is not the JSON key of a service account."),
}
DONE: Final = {
    "saved": N_("Saved. Tickets can be added to this wallet now."),
    "removed": N_("Removed. Tickets can no longer be added to this wallet."),
}


@page(WALLETS, "wallets", Access.staff("events:read"))
async def wallets(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """Which wallets are set up."""
    return await _page(request, platform, caller)


@action(f"{WALLETS}/apple", "put_apple_wallet", WRITES, most_bytes=MAX_FORM_BYTES)
async def put_apple(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Sign for Apple Wallet with the uploaded certificate."""
    if form.one("remove"):
        return await _remove(platform, caller, Wallet.APPLE)
    try:
        given = AppleKeysGiven(
            _file(form, "certificate"),
            _file(form, "key"),
            form.secret("password", 200),
            _file(form, "intermediate"),
            form.one("pass_type_id", 100),
            form.one("team_id", 100),
        )
        await platform.organiser.wallets.put_apple(editor_of(caller), given)
    except InvalidInput as error:
        return await _page(request, platform, caller, error, Wallet.APPLE, form)
    return go_to(f"{WALLETS}?done=saved")


@action(f"{WALLETS}/google", "put_google_wallet", WRITES, most_bytes=MAX_FORM_BYTES)
async def put_google(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Sign for Google Wallet with the uploaded service account."""
    if form.one("remove"):
        return await _remove(platform, caller, Wallet.GOOGLE)
    try:
        given = GoogleKeysGiven(form.one("issuer_id", 30), _file(form, "service_account"))
        await platform.organiser.wallets.put_google(editor_of(caller), given)
    except InvalidInput as error:
        return await _page(request, platform, caller, error, Wallet.GOOGLE, form)
    return go_to(f"{WALLETS}?done=saved")


async def _remove(platform: Platform, caller: Caller, wallet: Wallet) -> Response[bytes]:
    await platform.organiser.wallets.remove(editor_of(caller), wallet)
    return go_to(f"{WALLETS}?done=removed")


def _file(form: Form, name: str) -> bytes:
    """The file that the script put into the field."""
    text = form.one(name, MAX_FIELD_CHARS + 1)
    if len(text) > MAX_FIELD_CHARS:
        raise InvalidInput("this file is too large for a certificate or key", param=name)
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidInput("this field is no file in base64", param=name) from None


async def _page(
    request: Asked,
    platform: Platform,
    caller: Caller,
    refusal: InvalidInput | None = None,
    of: Wallet | None = None,
    form: Form | None = None,
) -> Response[bytes]:
    """The page, after a form that was refused with the reason. Files must be chosen again; browsers want it so."""
    found, now_us = await platform.organiser.wallets.keys_of(caller.organiser_id), platform.clock()
    words, problem = words_for(request), ""
    if refusal is not None:
        text = REFUSED.get(refusal.about.get("reason", ""), TOO_LARGE)
        problem = words(text, found=refusal.about.get("found", "")) if "{found}" in text else words(text)
    return render(
        request,
        "organiser/wallets.html",
        status=422 if refusal is not None else 200,
        script="js/organiser/wallets.js",
        apple=found.get(Wallet.APPLE),
        google=found.get(Wallet.GOOGLE),
        apple_usable=Wallet.APPLE in found and found[Wallet.APPLE].usable(now_us),
        problem=problem,
        problem_of=of.value if of is not None else "",
        field=refusal.param if refusal is not None else "",
        filled={name: form.one(name, 100) for name in ("pass_type_id", "team_id", "issuer_id")} if form else {},
        write="events:write" in caller.permissions,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


ROUTES: list[HTTPRouteHandler] = [wallets, put_apple, put_google]
