"""Tools that are built without a model, and what a build is."""
