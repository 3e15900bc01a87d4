"""Writes an OpenAPI document from an app's routes, if the app has no document itself."""

import sys
import traceback

from .documents import document
from .starlette_routes import starlette_routes
from .werkzeug_routes import werkzeug_routes


def described(app):
    """The document, or None if the routes are not known. Errors go to the log, and the app is served anyway."""
    try:
        if callable(getattr(app, "openapi", None)) and hasattr(app, "openapi_url"):
            # FastAPI serves its own document, unless that is switched off.
            return None if app.openapi_url else app.openapi()
        if hasattr(app, "url_map") and hasattr(app, "view_functions"):
            return document(_title(app), werkzeug_routes(app))
        if isinstance(getattr(app, "routes", None), list):
            routes = list(starlette_routes(app.routes))
            return document(_title(app), routes) if routes else None
    except Exception:
        traceback.print_exc(file=sys.stderr)
    return None


def _title(app):
    return str(getattr(app, "title", None) or getattr(app, "import_name", None) or "app")
