"""Containers that serve a tool."""
