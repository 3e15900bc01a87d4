"""Around a call: admission, placement, files, settlement."""
