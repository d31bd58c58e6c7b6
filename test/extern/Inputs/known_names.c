/* Functions of the host with the names of functions of the C library that are something else. */
long labs(long x) { return 7 * x; }
int toascii(int x) { return 3 * x; }
