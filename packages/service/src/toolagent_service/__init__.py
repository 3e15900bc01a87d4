"""Shared parts of the service: contracts of its steps, and rules. Not published."""
