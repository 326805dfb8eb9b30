"""Endpoints without a framework: a request value in, a response value out. Fast path, API and pages share them."""
