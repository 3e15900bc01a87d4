"""Hosts and front doors: their leases, draining, the watch of the event loop, calls of dead doors."""
