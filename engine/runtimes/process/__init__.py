"""Child processes: started without inherited descriptors, watched, and ended with everything they started."""
