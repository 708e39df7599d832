"""The release of einloom, in one place."""

VERSION = "0.1.0"
