"""Public kits for tests: random problems, and what must be true of every problem."""
