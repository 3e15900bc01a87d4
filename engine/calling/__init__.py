"""Makes calls: attempts with their mark, the exchange with the tool, calls at once, from queues and in lanes."""
