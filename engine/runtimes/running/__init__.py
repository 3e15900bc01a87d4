"""Which tools are up on this host: started for the first call, shared, ended."""
