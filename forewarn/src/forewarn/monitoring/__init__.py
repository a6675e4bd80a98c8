"""The monitor itself: compiled tables, the pure step, the policy, and what drives them."""
