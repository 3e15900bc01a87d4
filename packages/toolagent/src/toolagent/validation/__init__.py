"""What schemas, versions and files of tools must be like; needs the libraries of the extra `cli`."""
