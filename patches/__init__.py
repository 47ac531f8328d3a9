"""Verified patches that ship with the package."""
