/* Hints for names and words from other languages that users write out of habit. Only error messages
 * use these functions. */
#ifndef KJ_IR_FOREIGN_SYNTAX_H
#define KJ_IR_FOREIGN_SYNTAX_H

#include "ir/lexer.h"

/* Returns a hint for a name from another language, such as "`sqrtf` is `sqrt` here", or NULL. The
 * name can be dotted ("cuda.grid"). The hint is in the arena. */
const char *ki_explain_name(kj_arena *arena, const char *name);
/* Returns kjit's name for a type of another language ("f32" for "float"), or NULL. */
const char *ki_find_type_alias(const char *name);
/* Returns a hint for a word that cannot begin a declaration or statement, or NULL. */
const char *ki_explain_word(const char *word);

/* Reports that a type name does not exist, with a hint if possible. Does not return. */
_Noreturn void ki_fail_unknown_type(ki_lexer *lexer, const ki_type_expr *type);

#endif
