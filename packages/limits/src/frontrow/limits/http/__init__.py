"""The limiter in front of a web application: ASGI and WSGI middleware, a decorator, headers and client addresses."""
