"""Starts, stops and repairs tools without a person."""
