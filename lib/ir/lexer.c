/* The lexer. It also processes line directives, for example `@line(12, 5, "prog.py")`. The parser
 * treats a directive as white space. A front end generates kernel IR from another source; the
 * directive specifies the location in that source from which the text after the directive was
 * generated. */
#include "ir/lexer.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "ir/number.h"

const ki_token_info ki_token_table[KJ_TOKEN_COUNT] = {
  [KJ_TOKEN_END] = { "end of the text", KJ_NO_OP, KJ_NO_OP },
  [KJ_TOKEN_NAME] = { "a name", KJ_NO_OP, KJ_NO_OP },
  [KJ_TOKEN_INT] = { "a number", KJ_NO_OP, KJ_NO_OP },
  [KJ_TOKEN_FLOAT] = { "a number", KJ_NO_OP, KJ_NO_OP },
  [KJ_TOKEN_STRING] = { "a string", KJ_NO_OP, KJ_NO_OP },
#define X(name, text, binary, assign) [KJ_TOKEN_##name] = { text, binary, assign },
  KJ_PUNCTUATION(X)
#undef X
#define X(name, text, binary) [KJ_TOKEN_##name] = { text, binary, KJ_NO_OP },
    KJ_KEYWORDS(X)
#undef X
};

enum { FIRST_PUNCTUATION = KJ_TOKEN_POWER_ASSIGN };

/* Lists of the punctuation and keywords that begin with the same character. first_kinds has the
 * first token for each character. next_kinds has, for each token, the next token in its list.
 * KJ_TOKEN_COUNT ends a list. */
static uint8_t first_kinds[UCHAR_MAX + 1], next_kinds[KJ_TOKEN_COUNT];

static void find_first_kinds(void)
{
  memset(first_kinds, KJ_TOKEN_COUNT, sizeof first_kinds);
  for (int kind = KJ_TOKEN_COUNT - 1; kind >= FIRST_PUNCTUATION; kind--) {
    uint8_t *first = &first_kinds[(unsigned char)*ki_token_table[kind].text];
    next_kinds[kind] = *first;
    *first = (uint8_t)kind;
  }
}

static int first_kind(char c)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_first_kinds);
  return first_kinds[(unsigned char)c];
}

const bool ki_word_characters[256] = {
  ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['_'] = true, ['a' ... 'z'] = true
};

/* These functions accept only ASCII characters, independent of the locale. */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return ki_word_characters[(unsigned char)c]; }
static bool is_letter(char c) { return is_word(c) && !is_digit(c); }

static char peek(const ki_lexer *lexer, size_t ahead)
{
  return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : 0;
}

static uint32_t column_here(const ki_lexer *lexer)
{
  return (uint32_t)(lexer->at - lexer->line_start) + 1;
}

static kj_location here(const ki_lexer *lexer)
{
  if (lexer->has_no_locations) return (kj_location){ 0 };
  if (lexer->directed.line) return lexer->directed;
  return (kj_location){ lexer->file, lexer->line, column_here(lexer) };
}

void ki_note_text_place(const ki_lexer *lexer)
{
  const ki_token *token = &lexer->token;
  if (!lexer->directed.line) return;
  kj_report(lexer->diagnostics, lexer->sources,
            (kj_location){ lexer->file, token->line, token->column }, KJIT_SEVERITY_NOTE, KJIT_OK,
            "found here in the generated text");
}

void ki_fail_at(ki_lexer *lexer, kj_location location, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(lexer->diagnostics, lexer->sources, location, KJIT_SEVERITY_ERROR, status, format,
                 list);
  va_end(list);
  ki_note_text_place(lexer);
  longjmp(*lexer->on_error, KJ_JUMP_ERROR);
}

/* ---- blanks and comments ---- */

/* Emits a warning for lines that look like directives of the C preprocessor, which are otherwise
 * ignored as comments. */
static void warn_of_directive(ki_lexer *lexer)
{
  static const char *const directives[] = { "define", "pragma", "include", "undef",
                                            "ifdef",  "ifndef", "endif" };
  for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
    size_t length = strlen(directives[i]);
    if ((size_t)(lexer->end - lexer->at) <= length ||
        memcmp(lexer->at + 1, directives[i], length) != 0 || is_word(peek(lexer, length + 1)))
      continue;
    kj_report(lexer->diagnostics, lexer->sources, here(lexer), KJIT_SEVERITY_WARNING, KJIT_OK,
              "`#%s` is a comment here and does nothing%s", directives[i],
              i == 0   ? "; a constant is `const NAME = value`"
              : i == 1 ? "; attributes are written `@unroll`"
                       : "");
  }
}

static void skip_comment(ki_lexer *lexer)
{
  warn_of_directive(lexer);
  const char *newline = memchr(lexer->at, '\n', (size_t)(lexer->end - lexer->at));
  lexer->at = newline ? newline : lexer->end;
}

/* ---- line directives ---- */

static void read_string(ki_lexer *lexer);

static bool is_at_directive(const ki_lexer *lexer)
{
  static const char word[] = "@line";
  size_t length = sizeof word - 1;
  return (size_t)(lexer->end - lexer->at) >= length && memcmp(lexer->at, word, length) == 0 &&
         !is_word(peek(lexer, length));
}

static _Noreturn void refuse_directive(ki_lexer *lexer)
{
  ki_fail_at(lexer, here(lexer), KJIT_ERROR_SYNTAX,
             "expected a line directive with a line and an optional column and file: `@line(12, "
             "\"prog.py\")`, `@line(12, 5, \"prog.py\")` or `@line()`");
}

static void skip_spaces(ki_lexer *lexer)
{
  while (peek(lexer, 0) == ' ' || peek(lexer, 0) == '\t') lexer->at++;
}

static bool accept_character(ki_lexer *lexer, char c)
{
  skip_spaces(lexer);
  if (peek(lexer, 0) != c) return false;
  lexer->at++;
  skip_spaces(lexer);
  return true;
}

/* Reads a number of a line directive; the minimum is 1. */
static uint32_t read_directed_number(ki_lexer *lexer)
{
  uint32_t value = 0;
  const char *start = lexer->at;
  for (; is_digit(peek(lexer, 0)); lexer->at++)
    if (__builtin_mul_overflow(value, 10u, &value) ||
        __builtin_add_overflow(value, (uint32_t)(peek(lexer, 0) - '0'), &value))
      ki_fail_at(lexer, here(lexer), KJIT_ERROR_SYNTAX,
                 "the line and column of a line directive must be at most 4294967295");
  if (lexer->at == start) refuse_directive(lexer);
  if (value == 0)
    ki_fail_at(lexer, here(lexer), KJIT_ERROR_SYNTAX,
               "the line and column of a line directive must be at least 1");
  return value;
}

static uint32_t find_directed_file(ki_lexer *lexer, const char *name)
{
  kj_map_entry *entry = kj_get_entry(&lexer->directed_files, name, strlen(name));
  if (entry->value) return (uint32_t)(uintptr_t)entry->value;
  if (lexer->sources->count >= KJ_MAX_SOURCES)
    ki_fail_at(
      lexer, here(lexer), KJIT_ERROR_UNSUPPORTED,
      "a module can have at most %d sources, including those that its line directives name",
      KJ_MAX_SOURCES);
  uint32_t number = ki_add_named_source(lexer->module, lexer->file, name, NULL, 0);
  entry->value = (void *)(uintptr_t)number;
  return number;
}

/* Reads `@line(12, 5, "prog.py")`. The text up to the next directive was generated from this
 * location. */
static void read_directive(ki_lexer *lexer)
{
  kj_location place = { 0 };
  /* errors in the directive itself refer to its own location in the text */
  lexer->directed.line = 0;
  lexer->token.line = lexer->line;
  lexer->token.column = column_here(lexer);
  lexer->token.start = lexer->at;
  if (!lexer->module)
    ki_fail_at(lexer, here(lexer), KJIT_ERROR_SYNTAX, "a line directive cannot appear in a type");
  lexer->at += strlen("@line");
  if (!accept_character(lexer, '(')) refuse_directive(lexer);
  if (accept_character(lexer, ')')) return;
  place.line = read_directed_number(lexer);
  bool more = accept_character(lexer, ',');
  if (more && is_digit(peek(lexer, 0))) {
    place.column = read_directed_number(lexer);
    more = accept_character(lexer, ',');
  }
  if (more && peek(lexer, 0) != '"') refuse_directive(lexer);
  if (more) {
    lexer->token.location = here(lexer);
    read_string(lexer);
    lexer->directed_file = find_directed_file(lexer, lexer->token.string);
  }
  if (!accept_character(lexer, ')')) refuse_directive(lexer);
  if (!lexer->directed_file)
    lexer->directed_file = find_directed_file(lexer, lexer->sources->items[lexer->file].name);
  place.file = lexer->directed_file;
  lexer->directed = place;
}

/* Skips blanks, comments and directives. Returns whether a newline was among them. */
static bool skip_blanks(ki_lexer *lexer)
{
  bool newline = false;
  for (; lexer->at < lexer->end; lexer->at++) {
    char c = *lexer->at;
    if (c > '@') break; /* most tokens are names */
    if (c == '\n') {
      newline = true;
      lexer->line++;
      lexer->line_start = lexer->at + 1;
    } else if (c == '#') {
      if (lexer->is_expression)
        ki_fail_at(lexer, here(lexer), KJIT_ERROR_SYNTAX,
                   "a comment cannot appear in an expression");
      skip_comment(lexer);
      lexer->at--;
    } else if (c == '@' && !lexer->is_expression && is_at_directive(lexer)) {
      read_directive(lexer);
      lexer->at--;
    } else if (c != ' ' && c != '\t' && c != '\r') break;
  }
  return newline;
}

/* ---- names ---- */

static ki_token_kind find_keyword(const char *text, size_t length)
{
  for (int kind = first_kind(*text); kind < KJ_TOKEN_COUNT; kind = next_kinds[kind]) {
    const char *keyword = ki_token_table[kind].text;
    if (strncmp(keyword, text, length) == 0 && keyword[length] == 0) return (ki_token_kind)kind;
  }
  return KJ_TOKEN_NAME;
}

bool ki_is_name(const char *text)
{
  size_t length = strlen(text);
  if (!is_letter(text[0])) return false;
  for (size_t i = 0; i < length; i++)
    if (!is_word(text[i])) return false;
  return find_keyword(text, length) == KJ_TOKEN_NAME;
}

/* Returns whether a word is a keyword in a formula. Other keywords are ordinary names in
 * formulas. */
static bool is_formula_keyword(ki_token_kind kind)
{
  return kind == KJ_TOKEN_AND || kind == KJ_TOKEN_OR || kind == KJ_TOKEN_NOT ||
         kind == KJ_TOKEN_TRUE || kind == KJ_TOKEN_FALSE || kind == KJ_TOKEN_IF;
}

static void read_name(ki_lexer *lexer)
{
  ki_token *token = &lexer->token;
  const char *at = lexer->at;
  while (at < lexer->end && is_word(*at)) at++;
  lexer->at = at;
  token->length = (size_t)(at - token->start);
  token->kind = find_keyword(token->start, token->length);
  if (lexer->is_formula && !is_formula_keyword(token->kind)) token->kind = KJ_TOKEN_NAME;
  if (token->kind == KJ_TOKEN_NAME)
    token->name = kj_get_entry(&lexer->names, token->start, token->length);
}

/* Reads a name in backticks, such as `trip distance`. */
static void read_quoted_name(ki_lexer *lexer)
{
  ki_token *token = &lexer->token;
  const char *start = ++lexer->at;
  while (peek(lexer, 0) && peek(lexer, 0) != '`' && peek(lexer, 0) != '\n') lexer->at++;
  if (peek(lexer, 0) != '`')
    ki_fail_at(lexer, token->location, KJIT_ERROR_SYNTAX,
               "unterminated name: expected a second backtick on the same line");
  if (lexer->at == start)
    ki_fail_at(lexer, token->location, KJIT_ERROR_SYNTAX, "expected a name between the backticks");
  token->kind = KJ_TOKEN_NAME;
  token->name = kj_get_entry(&lexer->names, start, (size_t)(lexer->at - start));
  lexer->at++;
  token->length = (size_t)(lexer->at - token->start);
}

/* Reads a name such as `@limit`. In a formula, `@` marks names of variables, as opposed to
 * columns. */
static void read_variable(ki_lexer *lexer)
{
  ki_token *token = &lexer->token;
  lexer->at++;
  while (lexer->at < lexer->end && is_word(*lexer->at)) lexer->at++;
  token->length = (size_t)(lexer->at - token->start);
  token->kind = KJ_TOKEN_NAME;
  token->name = kj_get_entry(&lexer->names, token->start, token->length);
}

/* ---- numbers ---- */

static int digit_value(char c)
{
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

/* Skips digits. There can be a single `_` between two digits. */
static void skip_digits(ki_lexer *lexer, int radix)
{
  while (digit_value(peek(lexer, 0)) < radix ||
         (peek(lexer, 0) == '_' && digit_value(peek(lexer, 1)) < radix))
    lexer->at++;
}

static void skip_fraction_and_exponent(ki_lexer *lexer)
{
  if (peek(lexer, 0) == '.') {
    lexer->token.kind = KJ_TOKEN_FLOAT;
    lexer->at++;
    if (is_digit(peek(lexer, 0))) skip_digits(lexer, 10);
  }
  char sign = peek(lexer, 1);
  bool has_sign = sign == '+' || sign == '-';
  if ((peek(lexer, 0) | 0x20) != 'e' || !is_digit(peek(lexer, has_sign ? 2 : 1))) return;
  lexer->token.kind = KJ_TOKEN_FLOAT;
  lexer->at += has_sign ? 2 : 1;
  skip_digits(lexer, 10);
}

static uint64_t read_integer(ki_lexer *lexer, const char *digits, const char *end, int radix)
{
  uint64_t value = 0;
  for (; digits < end; digits++) {
    if (*digits == '_') continue;
    if (__builtin_mul_overflow(value, (uint64_t)radix, &value) ||
        __builtin_add_overflow(value, (uint64_t)digit_value(*digits), &value))
      ki_fail_at(lexer, lexer->token.location, KJIT_ERROR_SYNTAX,
                 "an integer literal has at most 64 bits; the largest is 18446744073709551615");
  }
  return value;
}

static double read_float(ki_lexer *lexer, const char *start, const char *end, kjit_type type)
{
  char *digits = kj_copy_string(lexer->arena, start, (size_t)(end - start)), *to = digits;
  for (const char *from = digits; *from; from++)
    if (*from != '_') *to++ = *from;
  *to = 0;
  double value = ki_read_float(digits, type);
  if (isinf(value))
    ki_fail_at(lexer, lexer->token.location, KJIT_ERROR_SYNTAX, "the number is too large for %s",
               type == KJIT_F32    ? "f32"
               : type == KJIT_F16  ? "f16"
               : type == KJIT_BF16 ? "bf16"
                                   : "f64");
  return value;
}

static bool has_only(const char *text, size_t length, const char *set)
{
  for (size_t i = 0; i < length; i++)
    if (!strchr(set, text[i])) return false;
  return true;
}

static _Noreturn void refuse_suffix(ki_lexer *lexer, const char *suffix, size_t length)
{
  ki_token *token = &lexer->token;
  int number = (int)(suffix - token->start), word = length > 30 ? 30 : (int)length;
  if (length == 1 && (*suffix == 'f' || *suffix == 'F'))
    ki_fail_at(
      lexer, token->location, KJIT_ERROR_SYNTAX,
      "`%.*s%c`: literals take their type from the context; write `%.*sf32` for a fixed type",
      number, token->start, *suffix, number, token->start);
  if (has_only(suffix, length, "uUlL"))
    ki_fail_at(
      lexer, token->location, KJIT_ERROR_SYNTAX,
      "`%.*s%.*s`: literals take their type from the context; write `%.*s%s` for a fixed type",
      number, token->start, word, suffix, number, token->start,
      has_only(suffix, length, "uU")   ? "u32"
      : has_only(suffix, length, "lL") ? "i64"
                                       : "u64");
  ki_fail_at(lexer, token->location, KJIT_ERROR_SYNTAX,
             "`%.*s` is not a valid number suffix: expected a type name, as in `2.5f32` or `7u64`",
             word, suffix);
}

static kjit_type read_suffix(ki_lexer *lexer)
{
  const char *suffix = lexer->at;
  while (is_word(peek(lexer, 0))) lexer->at++;
  size_t length = (size_t)(lexer->at - suffix);
  if (length == 0) return KJIT_ANY;
  kjit_type type = ki_find_scalar(suffix, length);
  if (type == KJIT_ANY || type == KJIT_BOOL) refuse_suffix(lexer, suffix, length);
  if (type == KJIT_C64 || type == KJIT_C128)
    ki_fail_at(lexer, lexer->token.location, KJIT_ERROR_UNSUPPORTED,
               "complex numbers have no literal syntax: write `c64(re, im)`");
  return type;
}

static bool is_float_type(kjit_type type) { return type >= KJIT_F16 && type <= KJIT_F64; }

static void read_number(ki_lexer *lexer)
{
  ki_token *token = &lexer->token;
  token->kind = KJ_TOKEN_INT;
  char second = (char)(peek(lexer, 1) | 0x20);
  int radix = 10;
  if (peek(lexer, 0) == '0' && second == 'x' && digit_value(peek(lexer, 2)) < 16) radix = 16;
  if (peek(lexer, 0) == '0' && second == 'b' && digit_value(peek(lexer, 2)) < 2) radix = 2;
  if (radix != 10) lexer->at += 2;
  const char *digits = lexer->at;
  skip_digits(lexer, radix);
  if (radix == 10) skip_fraction_and_exponent(lexer);
  const char *end = lexer->at;
  kjit_type type = read_suffix(lexer);
  token->length = (size_t)(lexer->at - token->start);
  if (is_float_type(type) && radix != 10)
    ki_fail_at(lexer, token->location, KJIT_ERROR_SYNTAX, "a binary literal must be an integer");
  if (is_float_type(type)) token->kind = KJ_TOKEN_FLOAT;
  token->type = type != KJIT_ANY              ? type
                : token->kind == KJ_TOKEN_INT ? (kjit_type)KJ_WEAK_INT
                                              : (kjit_type)KJ_WEAK_FLOAT;
  if (token->kind == KJ_TOKEN_FLOAT) {
    if (type != KJIT_ANY && !is_float_type(type))
      ki_fail_at(lexer, token->location, KJIT_ERROR_SYNTAX,
                 "a literal with a point or an exponent cannot have an integer type");
    token->number = read_float(lexer, digits, end, type);
    return;
  }
  if (radix == 10 && end - digits > 1 && *digits == '0')
    ki_fail_at(lexer, token->location, KJIT_ERROR_SYNTAX,
               "a leading 0 does not mean octal in kernel IR: omit it, or write `0x`");
  token->integer = read_integer(lexer, digits, end, radix);
}

/* ---- strings ---- */

static char read_escape(ki_lexer *lexer)
{
  static const char letters[] = "nt\"\\", values[] = "\n\t\"\\";
  const char *found = peek(lexer, 0) ? strchr(letters, peek(lexer, 0)) : NULL;
  if (!found)
    ki_fail_at(lexer, here(lexer), KJIT_ERROR_SYNTAX,
               "expected n, t, \" or \\ after \\ in a string");
  return values[found - letters];
}

/* Reads a string literal. In a formula, single quotes are allowed, as in Python. */
static void read_string(ki_lexer *lexer)
{
  ki_token *token = &lexer->token;
  const char quote = *lexer->at, *close = ++lexer->at;
  while (close < lexer->end && *close != quote && *close != '\n')
    close += *close == '\\' && close + 1 < lexer->end ? 2 : 1;
  char *text = kj_allocate(lexer->arena, (size_t)(close - lexer->at) + 1), *to = text;
  while (peek(lexer, 0) != quote) {
    char c = peek(lexer, 0);
    if (c == 0 || c == '\n')
      ki_fail_at(lexer, token->location, KJIT_ERROR_SYNTAX,
                 "unterminated string: expected `%c` on the same line", quote);
    if (c == '\\') lexer->at++, c = read_escape(lexer);
    *to++ = c;
    lexer->at++;
  }
  lexer->at++;
  token->kind = KJ_TOKEN_STRING;
  token->string = text;
  token->length = (size_t)(lexer->at - token->start);
}

/* ---- punctuation ---- */

static _Noreturn void refuse_character(ki_lexer *lexer)
{
  char c = peek(lexer, 0);
  kj_location place = lexer->token.location;
  if (c == '!')
    ki_fail_at(lexer, place, KJIT_ERROR_SYNTAX, "%s no `!`: write `not`",
               ki_say_language_has(lexer));
  if (c == '\'') ki_fail_at(lexer, place, KJIT_ERROR_SYNTAX, "write strings in double quotes");
  if (c == '\\')
    ki_fail_at(
      lexer, place, KJIT_ERROR_SYNTAX,
      "omit the `\\`: a line continues if a bracket is open or if the line ends in an operator");
  int length = (unsigned char)c < 0x80   ? 1
               : (unsigned char)c < 0xe0 ? 2
               : (unsigned char)c < 0xf0 ? 3
                                         : 4;
  if ((unsigned char)c < 0x20 || c == 0x7f)
    ki_fail_at(lexer, place, KJIT_ERROR_SYNTAX, "unexpected control character 0x%02x", c);
  ki_fail_at(lexer, place, KJIT_ERROR_SYNTAX, "unexpected character `%.*s`", length, lexer->at);
}

static void read_punctuation(ki_lexer *lexer)
{
  for (int kind = first_kind(*lexer->at); kind < KJ_TOKEN_COUNT; kind = next_kinds[kind]) {
    size_t length = strlen(ki_token_table[kind].text);
    if ((size_t)(lexer->end - lexer->at) < length ||
        memcmp(lexer->at, ki_token_table[kind].text, length) != 0)
      continue;
    lexer->token.kind = (ki_token_kind)kind;
    lexer->token.length = length;
    lexer->at += length;
    return;
  }
  refuse_character(lexer);
}

void ki_next_token(ki_lexer *lexer)
{
  bool newline = skip_blanks(lexer);
  lexer->token = (ki_token){ .kind = KJ_TOKEN_END,
                             .location = here(lexer),
                             .line = lexer->line,
                             .column = column_here(lexer),
                             .newline_before = newline,
                             .start = lexer->at };
  if (lexer->at == lexer->end) return;
  char c = *lexer->at;
  if (is_letter(c)) read_name(lexer);
  else if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1)))) read_number(lexer);
  else if (c == '"' || (c == '\'' && lexer->is_formula)) read_string(lexer);
  else if (c == '`' && lexer->is_formula) read_quoted_name(lexer);
  else if (c == '@' && lexer->is_formula && is_letter(peek(lexer, 1))) read_variable(lexer);
  else read_punctuation(lexer);
}

void ki_init_lexer(ki_lexer *lexer, const char *text, size_t size_bytes, kj_arena *arena,
                   const kj_sources *sources, kj_diagnostics *diagnostics)
{
  *lexer = (ki_lexer){ .at = text,
                       .end = text + size_bytes,
                       .line_start = text,
                       .line = 1,
                       .arena = arena,
                       .sources = sources,
                       .diagnostics = diagnostics };
  kj_init_map(&lexer->names, arena);
  kj_init_map(&lexer->directed_files, arena);
  static const char byte_order_mark[] = "\xef\xbb\xbf";
  if (size_bytes >= 3 && memcmp(text, byte_order_mark, 3) == 0) lexer->at += 3;
}

/* ---- encoding ---- */

bool ki_is_utf8(const char *text)
{
  for (size_t left = strlen(text), length; left; text += length, left -= length) {
    length = kj_character_bytes(text, left);
    if (length == 0) return false;
  }
  return true;
}

bool ki_check_text(const kj_sources *sources, uint32_t file, kj_diagnostics *diagnostics)
{
  const char *text = sources->items[file].text;
  size_t size_bytes = sources->items[file].size_bytes;
  kj_location place = { file, 1, 1 };
  for (size_t i = 0; i < size_bytes;) {
    size_t length = kj_character_bytes(text + i, size_bytes - i);
    if (length == 0) {
      kj_report(diagnostics, sources, place, KJIT_SEVERITY_ERROR, KJIT_ERROR_SYNTAX,
                text[i] ? "byte 0x%02x is not valid UTF-8; the source of a module must be UTF-8"
                        : "unexpected byte 0x%02x in the source",
                (unsigned char)text[i]);
      return false;
    }
    place.column += (uint32_t)length;
    if (text[i] == '\n') place = (kj_location){ file, place.line + 1, 1 };
    i += length;
  }
  return true;
}
