"""A run as it happens: what is recorded comes in, pages and screens that move go out."""
