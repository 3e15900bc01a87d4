"""Fakes that keep the contracts, and conformance suites; public on purpose."""
