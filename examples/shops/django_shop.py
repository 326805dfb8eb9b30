"""A Django shop on another domain than its waiting room. Room and shop, each in a terminal:

frontrow room serve --event aurora --shop-origin http://127.0.0.1:8000
python examples/shops/django_shop.py runserver 8000 --noreload
"""

import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponse
from django.urls import re_path
from django.utils.html import escape

ROOM = os.environ.get("ROOM_URL", "http://127.0.0.1:8008")

settings.configure(
    DEBUG=False,
    SECRET_KEY="only for this example",  # noqa: S106
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["frontrow.waitingroom.protect.connector_django.DjangoConnector"],
    FRONTROW={
        "room": f"{ROOM}/v1/events/aurora/room",
        "event": "aurora",
        "shop": os.environ.get("SHOP_URL", "http://127.0.0.1:8000"),
        "open_paths": ["/health"],
        "rules_key": os.environ.get("RULES_KEY", ""),
    },
)


def page(request: HttpRequest) -> HttpResponse:
    person = request.frontrow_visit.person  # type: ignore[attr-defined]
    return HttpResponse(f"<h1>Welcome! Choose your seats.</h1><p>You are {escape(person)}.</p>" if person else "ok")


urlpatterns = [re_path("", page)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
