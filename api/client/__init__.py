"""The clients behind the routes.

They refuse calls that cannot be recorded, and answer as soon as the record is written.
"""
