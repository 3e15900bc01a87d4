"""Children of this process: started with their descriptors and no other, watched, and ended with all that they started."""
