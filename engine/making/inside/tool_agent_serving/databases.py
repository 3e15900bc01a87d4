"""Makes the tables of a database that the service gave to an app of Flask: there, no migration has been run."""

import sys

_GIVEN = ("sqlite:////home/tool/", "sqlite+aiosqlite:////home/tool/")


def fill(app):
    """Makes the tables that are not there, if the app has Flask-SQLAlchemy and its database is in its home. A failure is only told."""
    extension = (getattr(app, "extensions", None) or {}).get("sqlalchemy")
    if extension is None or not str(app.config.get("SQLALCHEMY_DATABASE_URI", "")).startswith(_GIVEN):
        return
    try:
        with app.app_context():
            # Flask-SQLAlchemy 2 keeps itself in a state.
            getattr(extension, "db", extension).create_all()
    except Exception as error:
        print(f"The tables of the database could not be made: {error}", file=sys.stderr)  # noqa: T201
