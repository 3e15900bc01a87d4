"""Shared parts of the service, not published: contracts of its steps, and rules."""
