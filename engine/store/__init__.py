"""The database: tables, migrations, one repository a table."""
