/* A loop that becomes compiled code.
 *
 * node: the node of the compiled function
 * inputs, outputs: names of values that the loop reads, and names of values that the loop assigns
 * parts: the data of the kernel of the loop
 * bounds: the start, the stop and the step of the loop */
struct loop;
/* The files by subject:
 *
 *   array.c        arrays of the program
 *   exchange.c,    memory of other libraries
 *   import.c
 *   place.c        the devices of threads; the devices of launches
 *   figure.c       plots of results; plots of times; plots of sizes of arrays */
struct files;
