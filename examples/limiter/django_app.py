"""Django in one file, with a limit for everything and a smaller one for one view.

Start it with `python examples/limiter/django_app.py runserver` and send two POSTs to /codes.
"""

import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

if not settings.configured:
    settings.configure(
        DEBUG=False,
        SECRET_KEY="only for this example",  # noqa: S106
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        MIDDLEWARE=["frontrow.limits.http.django.RateLimitMiddleware"],
        FRONTROW_LIMITS={"rules": "100/minute"},
    )

from frontrow.limits.http.django import limited


def home(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"say": "hello"})


@limited("1/minute")
def send_code(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"say": "sent"})


urlpatterns = [path("", home), path("codes", send_code)]
app = get_wsgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
