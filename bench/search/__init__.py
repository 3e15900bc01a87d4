"""Search: the labelled queries, the catalog that they ask, and what is measured of it."""
