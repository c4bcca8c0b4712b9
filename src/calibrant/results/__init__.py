"""What calibrant gives back: frozen dataclasses that print well and turn into dictionaries."""
