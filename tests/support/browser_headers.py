"""The headers that a browser sends when it asks for a page and when it sends a form."""

BROWSER = {"accept": "text/html,application/xhtml+xml", "accept-language": "en"}
FORM = BROWSER | {"content-type": "application/x-www-form-urlencoded"}
