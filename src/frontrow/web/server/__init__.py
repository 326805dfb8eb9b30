"""The HTTP server: processes, middleware, overload protection, CSRF, graceful close."""
