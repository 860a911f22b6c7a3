"""Dragoman trains translation models across machines and guides its user through the run."""

import logging

__version__ = "0.1.0"

# A library logs and leaves it to its user where that goes; the command line is such a user.
logging.getLogger(__name__).addHandler(logging.NullHandler())
