"""Every setting as a row, and where its value comes from."""
