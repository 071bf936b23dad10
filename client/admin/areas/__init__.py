"""The admin client's methods, by what they are about."""
