"""Callbacks: HTTP requests that tell receivers of the end of a call, batch or task."""
