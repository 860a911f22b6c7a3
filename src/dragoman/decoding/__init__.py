"""Translates with a trained model: search over ids, and text in, text out around it."""
