"""Records of measurements, their store, and the verdict over them."""
