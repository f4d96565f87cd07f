# SPDX-License-Identifier: GPL-2.0
"""Why something came to no end, in words for people: bench/main.py tells it."""


class Failed(Exception):
    """A measurement that could not be made; the text says why and what to do."""


class Wrong(Exception):
    """An argument that is none; the text says which are."""
