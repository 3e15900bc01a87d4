"""Processes: the only place that wires parts together."""
