"""Formulas as other tools and translators write them."""
