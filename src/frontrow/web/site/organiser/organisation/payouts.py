"""The organiser's page about the money: which account takes it, what lies there, and an account of one's own."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.payments.model.payment_accounts import AccountState
from frontrow.boxoffice.payments.model.provider_intents import ProviderError
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
PAYOUTS: Final = "/organiser/payouts"
STRIPE: Final = "stripe"  # where organisers can open an account by themselves
NAMES: Final = {"stripe": "Stripe", "adyen": "Adyen", "simulated": "Demo", "external": ""}
STATES: Final = {
    AccountState.ONBOARDING: (N_("Set-up not finished"), "warn"),
    AccountState.ACTIVE: (N_("Active"), "ok"),
    AccountState.RESTRICTED: (N_("Restricted"), "bad"),
    AccountState.CLOSED: (N_("Account closed"), "bad"),
}


@page(PAYOUTS, "payouts", Access.staff("figures:read"))
async def payouts(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """The account as its provider sees it now, and the money by account."""
    return await _page(request, platform, caller)


@action(f"{PAYOUTS}/connect", "connect_account", Access.staff("keys:write"))
async def connect(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Lead the owner to Stripe, to open an account or to finish one."""
    try:
        url = await platform.box_office.accounts.onboard(
            editor_of(caller), STRIPE, f"{platform.settings.public_url}{PAYOUTS}"
        )
    except ProviderError:
        return await _page(request, platform, caller, status=502)
    return go_to(url)


async def _page(request: Asked, platform: Platform, caller: Any, *, status: int = 200) -> Response[bytes]:
    accounts, offered = platform.box_office.accounts, _offers_accounts(platform)
    account = await accounts.look(editor_of(caller))
    word, tone = STATES[account.state] if account is not None else ("", "")
    return render(
        request,
        "organiser/payouts.html",
        status=status,
        account=account,
        provider=NAMES.get(account.provider, account.provider) if account else "",
        state=word,
        tone=tone,
        open=account is None or account.state in (AccountState.ACTIVE, AccountState.ONBOARDING),
        onboarding=account is not None and account.state is AccountState.ONBOARDING,
        money=await accounts.money(caller.organiser_id),
        names=NAMES,
        sent=await accounts.payouts(account) if account is not None else [],
        offered=offered and "keys:write" in caller.permissions and (account is None or account.provider == STRIPE),
        unreachable=status != 200,
    )


def _offers_accounts(platform: Platform) -> bool:
    """Whether organisers can open an account by themselves: the server takes payments over Stripe."""
    return bool(platform.settings.stripe.key) and platform.box_office.providers.find(STRIPE) is not None


ROUTES: list[HTTPRouteHandler] = [payouts, connect]
