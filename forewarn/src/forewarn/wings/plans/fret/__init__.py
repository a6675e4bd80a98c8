"""Requirements in FRET's structured English: scope, condition, component, timing, response.

Read as FRET reads them (Giannakopoulou, Pressburger, Mavridou and Schumann, "Automated
formalization of structured natural language requirements", Information and Software Technology
137, 2021), and translated into properties that a monitor can watch.
"""
