"""Tasks that make or repair tools, as the database has them: their turn to run, their stages, progress and log."""
