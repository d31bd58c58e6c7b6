/* Uses the names of lib/old_glibc and prints the results. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static const char *ran = "constructor did not run";
__attribute__((constructor)) static void note() { ran = "constructor ran before main"; }

__attribute__((noinline)) static void fail(int number) { throw std::runtime_error(std::to_string(number)); }

static void try_signals()
{
  for (int i = 1; i < 32; i++) {
    const char *name = sigabbrev_np(i), *text = sigdescr_np(i);
    printf("signal %d: %s, %s\n", i, name ? name : "none", text ? text : "none");
  }
}

static void try_files()
{
  char path[] = "/tmp/old_glibc.XXXXXX";
  int file = mkstemp(path);
  struct stat by_path, by_file, by_link, by_folder;
  bool is_cut = !ftruncate(file, 12345);
  bool is_read = !stat(path, &by_path) && !fstat(file, &by_file) && !lstat(path, &by_link) && !fstatat(AT_FDCWD, path, &by_folder, 0);
  printf("file: size %ld, lstat %s, fstatat %s, %s\n", (long)by_file.st_size, by_link.st_ino == by_path.st_ino ? "the same" : "other",
         by_folder.st_ino == by_path.st_ino ? "the same" : "other", is_cut && is_read ? "read" : "failed");
  printf("flags %d, stat of nothing %d\n", fcntl(file, F_GETFD), stat("/nonexistent", &by_path));
  unlink(path);
}

/* This process has two more open files than the child. */
static void try_child()
{
  int more[2];
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = -1;
  char shell[] = "/bin/sh", option[] = "-c", command[] = "for f in /proc/self/fd/[3-9]; do if [ $f -ef /etc ]; then exit 1; fi; done";
  char *const arguments[] = { shell, option, command, nullptr };
  more[0] = open("/etc", O_RDONLY);
  more[1] = open("/etc", O_RDONLY);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (posix_spawn(&child, shell, &actions, nullptr, arguments, environ) || waitpid(child, &status, 0) != child) status = -1;
  posix_spawn_file_actions_destroy(&actions);
  printf("the child has %s\n", status == 0 ? "standard files only" : "files of its parent");
  close(more[0]);
  close(more[1]);
}

static void try_thread()
{
  pid_t other = 0;
  std::thread([&] { other = gettid(); }).join();
  printf("thread and its id %s\n", other != gettid() && gettid() == getpid() ? "differ" : "do not differ");
}

int main(int count, char **)
{
  double x = 1.5 + count, y = 0.25 * count;
  puts(ran);
  try {
    fail(42);
  } catch (const std::exception &failure) {
    printf("caught %s\n", failure.what());
  }
  try_signals();
  try_files();
  try_child();
  try_thread();
  printf("%.15g %.15g %.15g %.15g %.15g %.15g\n", pow(x, y), exp(y), exp2(x), log(x), log2(x), hypot(x, y));
  printf("random numbers %s, memory in use %s, %s\n", arc4random() != arc4random() ? "differ" : "are equal", mallinfo2().uordblks > 0 ? "some" : "none",
         dlsym(RTLD_DEFAULT, "puts") ? "puts is found" : "puts is not found");
  return 0;
}
