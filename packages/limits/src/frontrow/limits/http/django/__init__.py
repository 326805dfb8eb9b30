"""Limits for Django, sync and async: a middleware with rules for all requests, and a decorator for views.

    MIDDLEWARE = ["frontrow.limits.http.django.RateLimitMiddleware", …]
    FRONTROW_LIMITS = {"rules": "100/minute", "store": "redis://127.0.0.1:6379/0"}

    @limited("5/minute", key="user")
    def send_code(request): ...

In `INSTALLED_APPS`, "frontrow.limits.http.django" lets `manage.py check` find mistakes in the setting. Everything that
a project needs is imported from here. Throttles for Django REST framework are in `frontrow.limits.http.rest_framework`.
"""

from frontrow.limits.http.body_parts import BodyPart
from frontrow.limits.http.django.middleware import RateLimitMiddleware
from frontrow.limits.http.django.views import include_limited, limited
from frontrow.limits.http.exempt import exempt
from frontrow.limits.quota import Decision, Quota
from frontrow.limits.rules import RequestRule, RuleBook
from frontrow.limits.tiers import Tiers

__all__ = [
    "BodyPart",
    "Decision",
    "Quota",
    "RateLimitMiddleware",
    "RequestRule",
    "RuleBook",
    "Tiers",
    "exempt",
    "include_limited",
    "limited",
]
