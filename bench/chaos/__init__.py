"""Calls under `kill -9`: what is promised of every call is looked up afterwards."""
