"""What surrounds a call: validation, admission, files, settlement."""
