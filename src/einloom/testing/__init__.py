"""Public kits for tests: random problems, what must be true of every problem, and what of every search method."""
