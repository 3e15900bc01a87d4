"""Models by the protocol they speak."""
