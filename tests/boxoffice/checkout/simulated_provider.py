"""The simulated payment provider as the contract of all providers asks it."""

from frontrow.boxoffice.adapters.payments.simulated import REFUND_FAILS, REFUND_PENDS, SimulatedProvider
from frontrow.boxoffice.payments.model.provider_intents import Intent
from tests.contracts.payment_provider import ProviderCase

SIMULATED = {
    "visa": "pm_card_visa",
    "declined": "pm_card_declined",
    "3ds": "pm_card_3ds",
    "refund_fails": REFUND_FAILS,
    "refund_pends": REFUND_PENDS,
}


def simulated_case(provider: SimulatedProvider) -> ProviderCase:
    async def answer(intent: Intent, success: bool) -> None:
        provider.finish_action(intent.ref, agreed=success)

    async def arrive(intent: Intent, comes: bool) -> None:
        provider.finish_money(intent.ref, failed=not comes)

    return ProviderCase(provider, SIMULATED, answer, arrive)
