"""Requests, read strictly and within bounds."""
