"""The samples of a page of metrics, read by Prometheus' own parser."""

from prometheus_client.parser import text_string_to_metric_families


def samples(page: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of a page, by Prometheus' own parser."""
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in text_string_to_metric_families(page)
        for one in family.samples
    }


def total(page: str, name: str, **labels: str) -> float:
    wanted = frozenset(labels.items())
    return sum(value for (known, given), value in samples(page).items() if known == name and wanted <= given)
