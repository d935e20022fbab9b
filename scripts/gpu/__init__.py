"""What gpu_check.py is made of."""
