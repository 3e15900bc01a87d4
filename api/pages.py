"""The page that shows the API, with its scripts from here: a machine without internet has one too."""

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

__all__ = ["add_pages"]

_SCRIPTS = "/docs/static"


def add_pages(app: FastAPI) -> None:
    """Serve `/docs`, drawn by Swagger UI, from `/openapi.json`."""

    async def page(_request: Request) -> Response:
        html: HTMLResponse = get_swagger_ui_html(
            openapi_url=app.openapi_url or "",
            title=app.title,
            swagger_js_url=f"{_SCRIPTS}/swagger-ui-bundle.js",
            swagger_css_url=f"{_SCRIPTS}/swagger-ui.css",
            swagger_favicon_url=f"{_SCRIPTS}/favicon.png",
        )
        return html

    app.add_route("/docs", page, include_in_schema=False)
    app.mount(_SCRIPTS, StaticFiles(packages=[("fastapi_offline", "static")]))
