"""Being a host, and a front door: leases, draining, the watch of the event loop, calls of doors that are gone."""
