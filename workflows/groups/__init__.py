"""Groups: sessions, their use from other workflows, and the calls that a session adopts."""
