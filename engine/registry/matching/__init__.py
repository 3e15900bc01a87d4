"""Which tool answers a need: by its name, by a group that covers it, or by words and meanings."""
