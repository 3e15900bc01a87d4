"""Tables of tools that somebody else keeps: fetched, understood, kept in the catalog under a name of their own."""
