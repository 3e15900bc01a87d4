"""The client that stands behind the routes: it refuses what cannot be recorded, and answers as soon as the record is there."""
