"""Makes calls: attempts with their mark, the exchange with the tool, fast and queued calls, lanes."""
