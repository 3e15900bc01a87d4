"""What lies on this host's disk and has to go from it, whoever wrote it."""
