"""The pages people see: one module per topic, each with its `ROUTES`; `frontrow.web.server.app` collects them.

A page is a Litestar handler made by `site.routes.page` (shows) or `site.routes.action` (handles a form). Both
declare who has access, answer HTML in the visitor's language, and are not part of the OpenAPI document.
"""
