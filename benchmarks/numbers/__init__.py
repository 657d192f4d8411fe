"""Numbers: how well synthetic numeric columns keep their shape."""
