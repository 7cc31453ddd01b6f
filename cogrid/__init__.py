"""cogrid joins the language-model engines of one's own machines into one grid."""

__version__ = "0.1.0"
