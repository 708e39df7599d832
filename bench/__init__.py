"""Measurements: einloom beside AccelForge (`peer`), scaling with a chain's length (`scaling`), arrays (`arrays`)."""
