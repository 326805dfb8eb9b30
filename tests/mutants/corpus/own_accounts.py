"""Organisers' own accounts: each cent lies where it belongs."""

from tests.mutants.mutant import Mutant

TESTS = "tests/boxoffice/payments/test_own_accounts.py"
ACCOUNTS = "boxoffice/payments/payment_accounts.py"

MUTANTS = (
    Mutant(
        "a payment that forgets its account",
        "a payment stays at the account where it began",
        "boxoffice/payments/open_providers.py",
        "        return self.named(payment.provider, payment.account)\n",
        "        return self.named(payment.provider)\n",
        (f"{TESTS}::test_a_refund_goes_where_the_charge_was_after_the_account_was_changed",),
    ),
    Mutant(
        "the account of another organiser",
        "an account belongs to one organiser",
        ACCOUNTS,
        "(one.provider, one.account) == (provider, account) and one.organiser_id != editor.organiser_id",
        "one.account == account and one.organiser_id == editor.organiser_id",
        (f"{TESTS}::test_what_cannot_be_an_account_is_refused",),
    ),
    Mutant(
        "an account that takes nothing is paid by the server's own",
        "an organiser who cannot be paid sells nothing",
        ACCOUNTS,
        "            raise SellerCannotBePaid(organiser_id)\n",
        "            return Payee()\n",
        (f"{TESTS}::test_an_account_that_takes_nothing_refuses_in_a_sentence_and_charges_nobody",),
    ),
    Mutant(
        "the fee of a whole payment is rounded up",
        "a part of a cent is the organiser's",
        "boxoffice/payments/model/payment_accounts.py",
        "    return amount_minor * fee_basis_points // 10_000",
        "    return -(-amount_minor * fee_basis_points // 10_000)",
        (f"{TESTS}::test_two_organisers_sell_at_once_and_each_cent_lies_on_the_right_account",),
    ),
    Mutant(
        "accounts that were ended are not compared",
        "money on the wrong account is found",
        ACCOUNTS,
        "return [Payee(one.provider, one.account) for one in await self._ledger.payment_accounts.all_accounts()]",
        "return [Payee(one.provider, one.account) for one in self._current.values()]",
        (f"{TESTS}::test_money_on_the_wrong_account_is_found",),
    ),
)
