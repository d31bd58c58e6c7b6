/* The lexer, which reads tokens one at a time. A newline is not a token. Each token records whether
 * a newline precedes it, and the parser decides whether this newline ends a statement. */
#ifndef KJ_IR_LEXER_H
#define KJ_IR_LEXER_H

#include "ir/module.h"
#include "support/containers.h"

#define KJ_NO_OP KJIT_OP_COUNT

/* Punctuation: X(NAME, "text", binary operator, assignment operator). If one text is another text's
 * prefix, the longer text must come first. */
#define KJ_PUNCTUATION(X) \
  X(POWER_ASSIGN, "**=", KJ_NO_OP, KJIT_OP_POW) \
  X(FLOORDIV_ASSIGN, "//=", KJ_NO_OP, KJIT_OP_FLOORDIV) \
  X(SHL_ASSIGN, "<<=", KJ_NO_OP, KJIT_OP_SHL) \
  X(SHR_ASSIGN, ">>=", KJ_NO_OP, KJIT_OP_SHR) \
  X(POWER, "**", KJIT_OP_POW, KJ_NO_OP) \
  X(FLOORDIV, "//", KJIT_OP_FLOORDIV, KJ_NO_OP) \
  X(SHL, "<<", KJIT_OP_SHL, KJ_NO_OP) \
  X(SHR, ">>", KJIT_OP_SHR, KJ_NO_OP) \
  X(EQ, "==", KJIT_OP_EQ, KJ_NO_OP) \
  X(NE, "!=", KJIT_OP_NE, KJ_NO_OP) \
  X(LE, "<=", KJIT_OP_LE, KJ_NO_OP) \
  X(GE, ">=", KJIT_OP_GE, KJ_NO_OP) \
  X(ADD_ASSIGN, "+=", KJ_NO_OP, KJIT_OP_ADD) \
  X(SUB_ASSIGN, "-=", KJ_NO_OP, KJIT_OP_SUB) \
  X(MUL_ASSIGN, "*=", KJ_NO_OP, KJIT_OP_MUL) \
  X(DIV_ASSIGN, "/=", KJ_NO_OP, KJIT_OP_DIV) \
  X(MOD_ASSIGN, "%=", KJ_NO_OP, KJIT_OP_MOD) \
  X(AND_ASSIGN, "&=", KJ_NO_OP, KJIT_OP_BIT_AND) \
  X(OR_ASSIGN, "|=", KJ_NO_OP, KJIT_OP_BIT_OR) \
  X(XOR_ASSIGN, "^=", KJ_NO_OP, KJIT_OP_BIT_XOR) \
  X(ARROW, "->", KJ_NO_OP, KJ_NO_OP) \
  X(LT, "<", KJIT_OP_LT, KJ_NO_OP) \
  X(GT, ">", KJIT_OP_GT, KJ_NO_OP) \
  X(ASSIGN, "=", KJ_NO_OP, KJIT_OP_STORE) \
  X(PLUS, "+", KJIT_OP_ADD, KJ_NO_OP) \
  X(MINUS, "-", KJIT_OP_SUB, KJ_NO_OP) \
  X(STAR, "*", KJIT_OP_MUL, KJ_NO_OP) \
  X(SLASH, "/", KJIT_OP_DIV, KJ_NO_OP) \
  X(PERCENT, "%", KJIT_OP_MOD, KJ_NO_OP) \
  X(AMPERSAND, "&", KJIT_OP_BIT_AND, KJ_NO_OP) \
  X(PIPE, "|", KJIT_OP_BIT_OR, KJ_NO_OP) \
  X(CARET, "^", KJIT_OP_BIT_XOR, KJ_NO_OP) \
  X(TILDE, "~", KJ_NO_OP, KJ_NO_OP) \
  X(LEFT_PAREN, "(", KJ_NO_OP, KJ_NO_OP) \
  X(RIGHT_PAREN, ")", KJ_NO_OP, KJ_NO_OP) \
  X(LEFT_BRACKET, "[", KJ_NO_OP, KJ_NO_OP) \
  X(RIGHT_BRACKET, "]", KJ_NO_OP, KJ_NO_OP) \
  X(LEFT_BRACE, "{", KJ_NO_OP, KJ_NO_OP) \
  X(RIGHT_BRACE, "}", KJ_NO_OP, KJ_NO_OP) \
  X(COMMA, ",", KJ_NO_OP, KJ_NO_OP) \
  X(SEMICOLON, ";", KJ_NO_OP, KJ_NO_OP) \
  X(COLON, ":", KJ_NO_OP, KJ_NO_OP) \
  X(QUESTION, "?", KJ_NO_OP, KJ_NO_OP) \
  X(AT, "@", KJ_NO_OP, KJ_NO_OP) \
  X(DOT, ".", KJ_NO_OP, KJ_NO_OP)

/* Reserved words: X(NAME, "text", binary operator). */
#define KJ_KEYWORDS(X) \
  X(AND, "and", KJIT_OP_AND) \
  X(OR, "or", KJIT_OP_OR) \
  X(NOT, "not", KJ_NO_OP) \
  X(TRUE, "true", KJ_NO_OP) \
  X(FALSE, "false", KJ_NO_OP) \
  X(KERNEL, "kernel", KJ_NO_OP) \
  X(FUNC, "func", KJ_NO_OP) \
  X(IMPORT, "import", KJ_NO_OP) \
  X(EXTERN, "extern", KJ_NO_OP) \
  X(CONST, "const", KJ_NO_OP) \
  X(STRUCT, "struct", KJ_NO_OP) \
  X(LET, "let", KJ_NO_OP) \
  X(VAR, "var", KJ_NO_OP) \
  X(SHARED, "shared", KJ_NO_OP) \
  X(LOCAL, "local", KJ_NO_OP) \
  X(IF, "if", KJ_NO_OP) \
  X(ELSE, "else", KJ_NO_OP) \
  X(WHILE, "while", KJ_NO_OP) \
  X(FOR, "for", KJ_NO_OP) \
  X(IN, "in", KJ_NO_OP) \
  X(BREAK, "break", KJ_NO_OP) \
  X(CONTINUE, "continue", KJ_NO_OP) \
  X(RETURN, "return", KJ_NO_OP) \
  X(ASSERT, "assert", KJ_NO_OP) \
  X(RAISE, "raise", KJ_NO_OP) \
  X(PRINT, "print", KJ_NO_OP)

typedef enum ki_token_kind {
  KJ_TOKEN_END, /* end of the text */
  KJ_TOKEN_NAME,
  KJ_TOKEN_INT,
  KJ_TOKEN_FLOAT,
  KJ_TOKEN_STRING,
#define X(name, text, binary, assign) KJ_TOKEN_##name,
  KJ_PUNCTUATION(X)
#undef X
#define X(name, text, binary) KJ_TOKEN_##name,
    KJ_KEYWORDS(X)
#undef X
      KJ_TOKEN_COUNT
} ki_token_kind;

typedef struct ki_token_info {
  const char *text; /* set for punctuation and keywords */
  kjit_op binary, assign;
} ki_token_info;
extern const ki_token_info ki_token_table[KJ_TOKEN_COUNT];

/* The characters of which names and numbers consist: ASCII letters, digits and `_`, independent of
 * the locale. */
extern const bool ki_word_characters[256];

typedef struct ki_token {
  ki_token_kind kind;
  /* the location in the front end's source, if the token follows a line directive */
  kj_location location;
  uint32_t line, column; /* location in the text */
  bool newline_before;
  const char *start; /* pointer into the text */
  size_t length;
  kj_map_entry *name; /* NAME: the entry of the name in the lexer's map */
  kjit_type type;     /* INT, FLOAT: type from the suffix, or a weak type */
  uint64_t integer;
  double number;
  const char *string; /* STRING: the value after decoding escapes */
} ki_token;

typedef struct ki_lexer {
  const char *at, *end, *line_start;
  uint32_t file, line; /* file: index of the source */
  /* the location that the last line directive specifies for the text after it; line is 0 if no
   * directive applies */
  kj_location directed;
  uint32_t directed_file; /* the source that the last directive specified; 0 if there was none */
  kj_map directed_files;  /* maps a file name to the number of its source */
  /* directives add their sources to this module; NULL means that directives are not allowed */
  kjit_module *module;
  kj_arena *arena; /* owns names and strings */
  kj_map names;
  kj_diagnostics *diagnostics;
  const kj_sources *sources;
  bool has_no_locations; /* every token's location is 0 */
  bool is_expression;    /* the text is a single expression, without comments and directives */
  /* The text is a formula: an expression in which names are columns. Of all keywords, only
   * operators and literals are reserved, and a name in backticks can contain any characters. */
  bool is_formula;
  jmp_buf *on_error;
  ki_token token; /* the lookahead token */
} ki_lexer;

/* Returns the subject and the verb of a message about the language: "formulas have" or "kernel IR
 * has". */
static inline const char *ki_say_language_has(const ki_lexer *lexer)
{
  return lexer->is_formula ? "formulas have" : "kernel IR has";
}

/* text is the text of sources->items[file]; file is 0 unless the caller changes lexer->file. If the
 * text contains bytes that are not a token, the lexer reports an error and jumps to on_error with
 * KJ_JUMP_ERROR. The caller must therefore set on_error before the first ki_next_token. */
void ki_init_lexer(ki_lexer *lexer, const char *text, size_t size_bytes, kj_arena *arena,
                   const kj_sources *sources, kj_diagnostics *diagnostics);
/* Reads the next token into lexer->token. */
void ki_next_token(ki_lexer *lexer);
/* If the text has line directives, adds a note to the last error. The note has the error's location
 * in the text itself. */
void ki_note_text_place(const ki_lexer *lexer);
/* Reports an error and jumps to on_error. */
_Noreturn void ki_fail_at(ki_lexer *lexer, kj_location location, kjit_status status,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Returns whether a string is UTF-8. */
bool ki_is_utf8(const char *text);
/* Returns whether a source's text is UTF-8 and contains no 0 bytes. Reports the first invalid
 * byte. */
bool ki_check_text(const kj_sources *sources, uint32_t file, kj_diagnostics *diagnostics);
/* Returns whether the string is a valid name in the source and not a keyword. */
bool ki_is_name(const char *text);

#endif
