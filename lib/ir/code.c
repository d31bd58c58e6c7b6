/* kj_code belongs to both sides of the compiler's boundary, so its release is in the part that both
 * link. */
#include <stdlib.h>

#include "compiler.h"

void kj_free_code(kj_code *code)
{
  free(code->data);
  free(code->entry);
  free(code->facts);
  free(code->failures);
  free(code->prints);
  free(code->parameters);
  *code = (kj_code){ 0 };
}
