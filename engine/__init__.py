"""What the service does, free of Temporal and of any web framework."""
