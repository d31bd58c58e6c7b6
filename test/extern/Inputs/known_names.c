/* Functions of the application that have names of C library functions but compute something
 * else. */
long labs(long x) { return 7 * x; }
int toascii(int x) { return 3 * x; }
