"""Public kits for tests: random problems and trees, what is true of each problem, what of every search method."""
