"""Safe removal of files on this host's disk, whichever program wrote them."""
