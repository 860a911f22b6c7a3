"""From a trained model to translations: search over ids, and text in, text out around it."""
