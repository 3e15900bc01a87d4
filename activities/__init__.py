"""Thin adapters from Temporal to the engine."""
