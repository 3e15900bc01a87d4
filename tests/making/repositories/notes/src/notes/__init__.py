"""A service with two operations."""
