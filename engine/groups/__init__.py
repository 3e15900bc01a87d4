"""Groups whose tools live in sessions."""
