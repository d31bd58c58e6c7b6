/* What is queued behind the last one: those of it that nobody waits for, in front of which others
 * are, as many as there were. Of one whose kin are gone: none. What becomes of them is told here,
 * and whoever looks at it hears of that of which there is none beside it. */
int riddle(void);
