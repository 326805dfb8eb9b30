"""Endpoints without a framework: a request value in, a response value out. Lane, API and pages share them."""
