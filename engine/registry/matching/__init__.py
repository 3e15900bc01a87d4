"""Finds tools for a need: by name, by a group that covers it, or by words and meanings."""
