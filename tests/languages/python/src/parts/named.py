NAME = "named"
