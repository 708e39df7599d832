"""Public kits for tests: random problems and what must be true of each of them, random mapping trees."""
