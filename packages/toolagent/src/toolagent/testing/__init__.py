"""Fakes that keep the contracts, and conformance suites. Public on purpose."""
