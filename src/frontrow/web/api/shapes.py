"""What the API's bodies are made of; see `frontrow.web.endpoints.json_values`."""

from frontrow.web.endpoints.json_values import MoneyView as MoneyView
from frontrow.web.endpoints.json_values import Time as Time
from frontrow.web.endpoints.json_values import time_text as time_text
