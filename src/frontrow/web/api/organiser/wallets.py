"""The keys that sign the organiser's wallet passes: upload them, see whose they are, remove them."""

from typing import Annotated

import msgspec
from litestar import delete, get, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody

from frontrow.boxoffice.tickets.model.wallets import Wallet, WalletKeys
from frontrow.boxoffice.tickets.wallet_keys import MAX_FILE_BYTES, AppleKeysGiven, GoogleKeysGiven
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

WALLETS = "/v1/organiser/wallets"
MAX_BODY_BYTES = 4 * MAX_FILE_BYTES * 4 // 3
WRITES = {"access": Access.staff("events:write"), "problems": (413,)}
File = Annotated[bytes, msgspec.Meta(max_length=MAX_FILE_BYTES, examples=["MIIKcgIBAzCCCi4G"])]


class AppleWalletBody(msgspec.Struct, forbid_unknown_fields=True):
    """The certificate of a pass type, its key, and Apple's intermediate certificate (WWDR), as files in base64.

    `certificate` is a `.p12` file with the key, or a certificate as PEM or DER; then `key` is PEM. `password` opens the
    `.p12` file or the key. `intermediate` may be left out if the `.p12` file contains it. The identifiers are compared
    with the certificate; empty ones are read from it.
    """

    certificate: File
    key: File = b""
    password: Annotated[str, msgspec.Meta(max_length=200)] = ""
    intermediate: File = b""
    pass_type_id: Annotated[str, msgspec.Meta(max_length=100, examples=["pass.org.example.tickets"])] = ""
    team_id: Annotated[str, msgspec.Meta(max_length=100, examples=["A1B2C3D4E5"])] = ""


class GoogleWalletBody(msgspec.Struct, forbid_unknown_fields=True):
    """The issuer id and the JSON file of a service account, in base64."""

    issuer_id: Annotated[str, msgspec.Meta(max_length=30, examples=["3388000000012345678"])]
    service_account: File


class AppleWalletView(msgspec.Struct):
    """Whose passes are signed for Apple Wallet, and until when. The keys are never shown."""

    pass_type_id: str
    team_id: str
    expires_at: Time
    usable: bool


class GoogleWalletView(msgspec.Struct):
    """Whose passes are signed for Google Wallet. The key is never shown."""

    issuer_id: str
    client_email: str


class WalletsView(msgspec.Struct):
    """The wallets that fans can add their tickets to; null: not set up."""

    apple: AppleWalletView | None = None
    google: GoogleWalletView | None = None


@get(
    WALLETS,
    operation_id="get_wallets",
    summary="The wallets that tickets can be added to",
    opt={"access": Access.staff("events:read")},
)
async def get_wallets(platform: FromPlatform, caller: FromCaller) -> WalletsView:
    return await _view(platform, caller.organiser_id)


@put(
    f"{WALLETS}/apple",
    operation_id="put_apple_wallet",
    summary="Sign tickets for Apple Wallet with this certificate",
    request_max_body_size=MAX_BODY_BYTES,
    opt=WRITES,
)
async def put_apple_wallet(platform: FromPlatform, caller: FromCaller, data: JSONBody[AppleWalletBody]) -> WalletsView:
    given = AppleKeysGiven(
        data.certificate, data.key, data.password, data.intermediate, data.pass_type_id, data.team_id
    )
    await platform.organiser.wallets.put_apple(editor_of(caller), given)
    return await _view(platform, caller.organiser_id)


@put(
    f"{WALLETS}/google",
    operation_id="put_google_wallet",
    summary="Sign tickets for Google Wallet with this service account",
    request_max_body_size=MAX_BODY_BYTES,
    opt=WRITES,
)
async def put_google_wallet(
    platform: FromPlatform, caller: FromCaller, data: JSONBody[GoogleWalletBody]
) -> WalletsView:
    given = GoogleKeysGiven(data.issuer_id, data.service_account)
    await platform.organiser.wallets.put_google(editor_of(caller), given)
    return await _view(platform, caller.organiser_id)


@delete(
    f"{WALLETS}/apple",
    operation_id="remove_apple_wallet",
    summary="Forget the keys for Apple Wallet; passes that people have stay valid",
    status_code=200,
    opt={"access": Access.staff("events:write")},
)
async def remove_apple_wallet(platform: FromPlatform, caller: FromCaller) -> WalletsView:
    await platform.organiser.wallets.remove(editor_of(caller), Wallet.APPLE)
    return await _view(platform, caller.organiser_id)


@delete(
    f"{WALLETS}/google",
    operation_id="remove_google_wallet",
    summary="Forget the keys for Google Wallet; passes that people have stay valid",
    status_code=200,
    opt={"access": Access.staff("events:write")},
)
async def remove_google_wallet(platform: FromPlatform, caller: FromCaller) -> WalletsView:
    await platform.organiser.wallets.remove(editor_of(caller), Wallet.GOOGLE)
    return await _view(platform, caller.organiser_id)


async def _view(platform: Platform, organiser_id: str) -> WalletsView:
    found = await platform.organiser.wallets.keys_of(organiser_id)
    return WalletsView(_apple(found.get(Wallet.APPLE), platform.clock()), _google(found.get(Wallet.GOOGLE)))


def _apple(keys: WalletKeys | None, now_us: int) -> AppleWalletView | None:
    if keys is None:
        return None
    return AppleWalletView(keys.account, keys.holder, time_text(keys.expires_at_us), keys.usable(now_us))


def _google(keys: WalletKeys | None) -> GoogleWalletView | None:
    return GoogleWalletView(keys.account, keys.holder) if keys is not None else None


ROUTES: list[HTTPRouteHandler] = [
    get_wallets,
    put_apple_wallet,
    put_google_wallet,
    remove_apple_wallet,
    remove_google_wallet,
]
