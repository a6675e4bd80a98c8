"""Messages: from bytes to columns, and from columns to values."""
