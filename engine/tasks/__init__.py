"""Tasks that make or repair tools, and conversations of agents, as the database has them."""
