"""The payment provider for tests: takes no money, decides by the name of the card, and fails on demand."""

from frontrow.boxoffice.adapters.payments.simulated import Fault, SimulatedProvider

__all__ = ["Fault", "SimulatedProvider"]
