"""The pages people see: one module per topic, each with its `ROUTES`; `frontrow.web.app` collects them.

A page is a Litestar handler made by `site.routes.page` (shows) or `site.routes.action` (a form's answer). Both declare
who may come, answer HTML in the visitor's language, and stay out of the API's document.
"""
