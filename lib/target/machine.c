#include "target/machine.h"

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void destroy_machine(kj_machine *m)
{
  if (m->layout) LLVMDisposeTargetData(m->layout);
  if (m->machine) LLVMDisposeTargetMachine(m->machine);
  free(m->cpu);
  free(m->features);
  free(m);
}

static kj_machine *make_machine(const kj_machine_kind *kind)
{
  LLVMTargetRef target;
  char *message = NULL;
  kj_machine *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->cpu = strdup(kind->cpu);
  m->features = strdup(kind->features);
  m->level = kind->level;
  if (!m->cpu || !m->features || LLVMGetTargetFromTriple(kind->triple, &target, &message)) {
    LLVMDisposeMessage(message);
    destroy_machine(m);
    return NULL;
  }
  m->machine = LLVMCreateTargetMachine(target, kind->triple, kind->cpu, kind->features, kind->level,
                                       kind->relocation, kind->model);
  m->layout = LLVMCreateTargetDataLayout(m->machine);
  return m;
}

static bool is_of_kind(const kj_machine *m, const kj_machine_kind *kind)
{
  return m->level == kind->level && strcmp(m->cpu, kind->cpu) == 0 &&
         strcmp(m->features, kind->features) == 0;
}

void kj_init_machines(kj_machines *machines)
{
  pthread_mutex_init(&machines->mutex, NULL);
  machines->idle = NULL;
}

void kj_free_machines(kj_machines *machines)
{
  for (kj_machine *m = machines->idle, *next; m; m = next) {
    next = m->next;
    destroy_machine(m);
  }
  pthread_mutex_destroy(&machines->mutex);
}

kj_machine *kj_take_machine(kj_machines *machines, const kj_machine_kind *kind)
{
  pthread_mutex_lock(&machines->mutex);
  kj_machine **at = &machines->idle;
  while (*at && !is_of_kind(*at, kind)) at = &(*at)->next;
  kj_machine *found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&machines->mutex);
  return found ? found : make_machine(kind);
}

void kj_return_machine(kj_machines *machines, kj_machine *machine)
{
  pthread_mutex_lock(&machines->mutex);
  machine->next = machines->idle;
  machines->idle = machine;
  pthread_mutex_unlock(&machines->mutex);
}
