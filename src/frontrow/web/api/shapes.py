"""What the API's bodies are made of; see `frontrow.web.shapes`."""

from frontrow.web.shapes import MoneyView as MoneyView
from frontrow.web.shapes import Time as Time
from frontrow.web.shapes import time_text as time_text
