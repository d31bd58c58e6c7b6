/* What people write by habit of other languages: sentences for errors. Only error paths come
 * here. */
#ifndef KJ_IR_HABITS_H
#define KJ_IR_HABITS_H

#include "ir/lexer.h"

/* What to write instead of a name, which may be dotted ("cuda.grid"), or NULL: "`sqrtf` is `sqrt`
 * here". In the arena. */
const char *ki_explain_name(kj_arena *arena, const char *name);
/* The type known elsewhere under the name, or NULL: "f32" for "float". */
const char *ki_find_type_alias(const char *name);
/* A sentence for a word that begins no declaration or statement, or NULL. */
const char *ki_explain_word(const char *word);

/* Reports a type name that is none. */
_Noreturn void ki_fail_unknown_type(ki_lexer *lexer, const ki_type_expr *type);

#endif
