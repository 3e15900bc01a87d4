"""Making and repairing tools, with the agent that writes them."""
