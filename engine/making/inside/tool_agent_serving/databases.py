"""Makes the tables of a database that the service gave to an app of Flask: there, no migration has been run."""

import sys
from collections.abc import Mapping

_GIVEN = ("sqlite:////home/tool/", "sqlite+aiosqlite:////home/tool/")


def fill(app):
    """Makes the tables that are not there, if the app has Flask-SQLAlchemy and its database is in its home. A failure is only told.

    Databases besides, of `SQLALCHEMY_BINDS`, are the app's own, and stay as they are.
    """
    try:
        extensions = getattr(app, "extensions", None)
        extension = extensions.get("sqlalchemy") if isinstance(extensions, Mapping) else None
        if extension is None or not str(app.config.get("SQLALCHEMY_DATABASE_URI", "")).startswith(_GIVEN):
            return
        with app.app_context():
            # Flask-SQLAlchemy 2 keeps itself in a state. None is the database without a name: `bind` of 2, `bind_key` of 3.
            getattr(extension, "db", extension).create_all(None)
    except Exception as error:
        print(f"The tables of the database could not be made: {error}", file=sys.stderr)  # noqa: T201
