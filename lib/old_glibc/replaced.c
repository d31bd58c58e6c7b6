/* This file is part of builds that must run on systems older than the build machine. With the
 * option --wrap, the linker turns each use of a name listed in replaced.def, including uses in
 * LLVM, into __wrap_<name>. This file implements __wrap_<name>, using only functions that glibc has
 * had since version 2.25 or earlier. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* ---- files: before 2.33 these functions were macros over functions with a version number ---- */

enum { STAT_VERSION = 1, MKNOD_VERSION = 0 };

int __xstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int file, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __xmknod(int version, const char *path, mode_t mode, dev_t *device);

HIDDEN int __wrap_stat(const char *path, struct stat *status);
int __wrap_stat(const char *path, struct stat *status)
{
  return __xstat(STAT_VERSION, path, status);
}

HIDDEN int __wrap_fstat(int file, struct stat *status);
int __wrap_fstat(int file, struct stat *status) { return __fxstat(STAT_VERSION, file, status); }

HIDDEN int __wrap_lstat(const char *path, struct stat *status);
int __wrap_lstat(const char *path, struct stat *status)
{
  return __lxstat(STAT_VERSION, path, status);
}

HIDDEN int __wrap_fstatat(int folder, const char *path, struct stat *status, int flags);
int __wrap_fstatat(int folder, const char *path, struct stat *status, int flags)
{
  return __fxstatat(STAT_VERSION, folder, path, status, flags);
}

/* On x86-64, struct stat64 is the same as struct stat. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "stat and stat64 are one");

HIDDEN int __wrap_stat64(const char *path, struct stat *status);
int __wrap_stat64(const char *path, struct stat *status)
{
  return __xstat(STAT_VERSION, path, status);
}

HIDDEN int __wrap_fstat64(int file, struct stat *status);
int __wrap_fstat64(int file, struct stat *status) { return __fxstat(STAT_VERSION, file, status); }

HIDDEN int __wrap_lstat64(const char *path, struct stat *status);
int __wrap_lstat64(const char *path, struct stat *status)
{
  return __lxstat(STAT_VERSION, path, status);
}

HIDDEN int __wrap_mknod(const char *path, mode_t mode, dev_t device);
int __wrap_mknod(const char *path, mode_t mode, dev_t device)
{
  return __xmknod(MKNOD_VERSION, path, mode, &device);
}

/* the argument of each command has the size of a register or is ignored */
HIDDEN int __wrap_fcntl64(int file, int command, ...);
int __wrap_fcntl64(int file, int command, ...)
{
  va_list arguments;
  va_start(arguments, command);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  return fcntl(file, command, argument);
}

/* ---- processes and threads ---- */

HIDDEN pid_t __wrap_gettid(void);
pid_t __wrap_gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* While this is true, libstdc++ omits the lock prefix of instructions. */
extern HIDDEN char __wrap___libc_single_threaded;
char __wrap___libc_single_threaded = 0;

/* Closes files on a system without /proc. */
static int close_each_number(posix_spawn_file_actions_t *actions, int first)
{
  int failure = 0;
  for (long file = first, end = sysconf(_SC_OPEN_MAX); !failure && file < end; file++)
    if (fcntl((int)file, F_GETFD) >= 0)
      failure = posix_spawn_file_actions_addclose(actions, (int)file);
  return failure;
}

static int close_each_listed(posix_spawn_file_actions_t *actions, int first, DIR *folder)
{
  int failure = 0;
  for (struct dirent *entry; !failure && (entry = readdir(folder));) {
    char *end;
    long file = strtol(entry->d_name, &end, 10);
    bool is_file = end != entry->d_name && !*end && file >= first && file != dirfd(folder);
    if (is_file) failure = posix_spawn_file_actions_addclose(actions, (int)file);
  }
  return failure;
}

/* The child process closes all files with a number of at least `first`. If the system has the
 * function, this version calls it, because only the system's function also closes files that
 * another thread opens in the meantime. */
HIDDEN int __wrap_posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions,
                                                           int first);
int __wrap_posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first)
{
  int (*newer)(posix_spawn_file_actions_t *, int);
  *(void **)&newer = dlsym(RTLD_DEFAULT, "posix_spawn_file_actions_addclosefrom_np");
  if (newer) return newer(actions, first);
  DIR *folder = opendir("/proc/self/fd");
  if (!folder) return close_each_number(actions, first);
  int failure = close_each_listed(actions, first, folder);
  closedir(folder);
  return failure;
}

static const struct {
  int number;
  const char *name, *description;
} signals[] = {
  { SIGHUP, "HUP", "Hangup" },
  { SIGINT, "INT", "Interrupt" },
  { SIGQUIT, "QUIT", "Quit" },
  { SIGILL, "ILL", "Illegal instruction" },
  { SIGTRAP, "TRAP", "Trace/breakpoint trap" },
  { SIGABRT, "ABRT", "Aborted" },
  { SIGBUS, "BUS", "Bus error" },
  { SIGFPE, "FPE", "Floating point exception" },
  { SIGKILL, "KILL", "Killed" },
  { SIGUSR1, "USR1", "User defined signal 1" },
  { SIGSEGV, "SEGV", "Segmentation fault" },
  { SIGUSR2, "USR2", "User defined signal 2" },
  { SIGPIPE, "PIPE", "Broken pipe" },
  { SIGALRM, "ALRM", "Alarm clock" },
  { SIGTERM, "TERM", "Terminated" },
  { SIGSTKFLT, "STKFLT", "Stack fault" },
  { SIGCHLD, "CHLD", "Child exited" },
  { SIGCONT, "CONT", "Continued" },
  { SIGSTOP, "STOP", "Stopped (signal)" },
  { SIGTSTP, "TSTP", "Stopped" },
  { SIGTTIN, "TTIN", "Stopped (tty input)" },
  { SIGTTOU, "TTOU", "Stopped (tty output)" },
  { SIGURG, "URG", "Urgent I/O condition" },
  { SIGXCPU, "XCPU", "CPU time limit exceeded" },
  { SIGXFSZ, "XFSZ", "File size limit exceeded" },
  { SIGVTALRM, "VTALRM", "Virtual timer expired" },
  { SIGPROF, "PROF", "Profiling timer expired" },
  { SIGWINCH, "WINCH", "Window changed" },
  { SIGIO, "POLL", "I/O possible" },
  { SIGPWR, "PWR", "Power failure" },
  { SIGSYS, "SYS", "Bad system call" },
};

HIDDEN const char *__wrap_sigabbrev_np(int number);
const char *__wrap_sigabbrev_np(int number)
{
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (signals[i].number == number) return signals[i].name;
  return NULL;
}

HIDDEN const char *__wrap_sigdescr_np(int number);
const char *__wrap_sigdescr_np(int number)
{
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (signals[i].number == number) return signals[i].description;
  return NULL;
}

/* ---- memory and random numbers ---- */

HIDDEN uint32_t __wrap_arc4random(void);
uint32_t __wrap_arc4random(void)
{
  uint32_t number;
  while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
    if (errno != EINTR) abort();
  return number;
}

/* The older function mallinfo has 32-bit fields. LLVM uses it only to report memory usage. */
HIDDEN struct mallinfo2 __wrap_mallinfo2(void);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct mallinfo2 __wrap_mallinfo2(void)
{
  struct mallinfo old = mallinfo();
  return (struct mallinfo2){ .arena = (unsigned)old.arena,
                             .ordblks = (unsigned)old.ordblks,
                             .smblks = (unsigned)old.smblks,
                             .hblks = (unsigned)old.hblks,
                             .hblkhd = (unsigned)old.hblkhd,
                             .usmblks = (unsigned)old.usmblks,
                             .fsmblks = (unsigned)old.fsmblks,
                             .uordblks = (unsigned)old.uordblks,
                             .fordblks = (unsigned)old.fordblks,
                             .keepcost = (unsigned)old.keepcost };
}
#pragma GCC diagnostic pop

/* ---- exceptions: how libgcc finds the unwind tables of a return address ---- */

typedef struct search {
  uintptr_t address;
  struct dl_find_object *found;
} search;

static int look_into(struct dl_phdr_info *object, size_t size, void *user)
{
  search *of = user;
  const void *tables = NULL;
  uintptr_t low = UINTPTR_MAX, high = 0;
  bool is_inside = false;
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &object->dlpi_phdr[i];
    uintptr_t start = object->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
    if (header->p_type == PT_GNU_EH_FRAME) tables = (const void *)start;
    if (header->p_type != PT_LOAD) continue;
    is_inside |= of->address >= start && of->address < end;
    low = start < low ? start : low;
    high = end > high ? end : high;
  }
  if (!is_inside || !tables) return 0;
  *of->found = (struct dl_find_object){ .dlfo_map_start = (void *)low,
                                        .dlfo_map_end = (void *)high,
                                        .dlfo_eh_frame = (void *)(uintptr_t)tables };
  return 1;
}

HIDDEN int __wrap__dl_find_object(void *address, struct dl_find_object *found);
int __wrap__dl_find_object(void *address, struct dl_find_object *found)
{
  search of = { (uintptr_t)address, found };
  return dl_iterate_phdr(look_into, &of) ? 0 : -1;
}
