"""How the database is reached: engines, the SQLite driver, the errors of both databases."""
