"""Groups whose tools are used in sessions."""
