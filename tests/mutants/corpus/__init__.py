"""The corpus: one module per area, each with a tuple `MUTANTS`. The name of the module is the area."""

import importlib
import pkgutil

from tests.mutants.mutant import Mutant


def corpus() -> dict[str, tuple[Mutant, ...]]:
    """All planted bugs by area."""
    areas = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {area: importlib.import_module(f"{__name__}.{area}").MUTANTS for area in areas}
