"""Word for people who wait elsewhere: their turn is near. Only for those who asked for it."""
