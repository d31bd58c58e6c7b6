"""Gravity and magnetic fields: the package's own tests of point masses, prisms and dipoles."""
TESTS = ["choclo/tests/" + name for name in ("test_point_gravity.py", "test_dipole.py", "test_distance.py", "test_prism_kernels.py", "test_prism_safe_log.py")]
