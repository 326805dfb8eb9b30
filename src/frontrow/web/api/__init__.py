"""The HTTP API v1: one module per topic, each with its `ROUTES`; `web.server.app` collects them.

A handler takes `platform` and `caller` by dependency injection, takes and returns msgspec Structs, and declares
`operation_id` and `opt={"access": …}`. Annotate the injected ones as `platform: FromPlatform, caller: FromCaller`.
"""
