"""The sections of a page that need products with several tokens, ceilings or energy."""
