"""The wire: values that may be read years later.

A contract grows, and never changes its meaning.
"""
