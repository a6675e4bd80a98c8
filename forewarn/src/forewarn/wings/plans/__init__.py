"""Plans before anything moves: rules about objects, judged over a finite trace of states."""
