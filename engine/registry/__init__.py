"""What tools exist: catalog files in, versions, search."""
