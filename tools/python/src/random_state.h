/* The random generators that np.random and the module random use in functions of kjit.njit. */
#ifndef RANDOM_STATE_H
#define RANDOM_STATE_H

/* Returns a function for compiled code, or NULL if there is none with this name.
 * kjit/_distributions.py has the names and types. */
void (*random_state_find(const char *name))(void);

#endif
