"""The application for `INSTALLED_APPS`: it adds the system checks."""

from django.apps import AppConfig
from django.core.checks import register

from frontrow.limits.http.django.checks import check_deployment, check_settings


class LimitsConfig(AppConfig):  # type: ignore[misc]  # no types
    """`INSTALLED_APPS = ["frontrow.limits.http.django", …]`."""

    name = "frontrow.limits.http.django"
    label = "frontrow_limits"
    verbose_name = "Rate limits"

    def ready(self) -> None:
        """Django calls this when all applications are there."""
        register(check_settings)
        register(check_deployment, deploy=True)
