"""Background work of a host: leases, the watch of the event loop, rounds over tools and sessions, removal of what is not needed."""
