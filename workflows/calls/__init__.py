"""Calls: alone, many at once and in lanes; the notice of their end; orders to tools."""
