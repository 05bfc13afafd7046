"""What a kernel costs."""
