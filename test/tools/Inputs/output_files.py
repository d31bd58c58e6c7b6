"""output_files.py KJIT_RUN... -- KJIT_COMPILE... -- FIVES FOLDER: output files that cannot be written completely."""
import os
import signal
import stat
import subprocess
import sys
import time

rest = sys.argv[1:]
run, rest = rest[:rest.index("--")], rest[rest.index("--") + 1:]
compile_, (fives, folder) = rest[:rest.index("--")], rest[rest.index("--") + 1:]
os.chdir(folder)


def call(command, prefix=""):
    return subprocess.run(["sh", "-c", prefix + 'exec "$@"', "sh", *command], capture_output=True, text=True)


def listed():
    return sorted(os.listdir("."))


def save(path, extra=(), count=100000):
    return [*run, fives, "--arg", f"x=zeros:f32[{count}]", "--save", f"x={path}", *extra]


# a new name and an existing name, with kjit-run and with kjit-compile
limited = "ulimit -f 1; "
for command, path in [(save("new.npy"), "new.npy"), ([*run, fives, "--arg", "x=zeros:f32[8]", "--emit", "llvm=code.ll", "--no-cache"], "code.ll"),
                      ([*compile_, fives, "--signature", "f32[:]", "--emit", "llvm", "-o", "code.ll"], "code.ll"),
                      ([*run, fives, "--arg", "x=zeros:f32[9000]", "--arg", "m=zeros:f32[100,100]", "--image", "m=m.ppm"], "m.ppm")]:
    process = call(command, limited)
    assert process.returncode == 4 and f"{path}: writing failed: File too large; no file was created" in process.stderr, (command, process)
    assert listed() == [], listed()
    with open(path, "w", encoding="ascii") as file:
        file.write("before")
    os.chmod(path, 0o640)
    process = call(command, limited)
    assert process.returncode == 4 and f"{path}: writing failed: File too large; the existing file is unchanged" in process.stderr, process
    assert listed() == [path] and open(path, encoding="ascii").read() == "before"
    assert call(command).returncode == 0
    assert listed() == [path] and open(path, "rb").read(6) != b"before" and stat.S_IMODE(os.stat(path).st_mode) == 0o640
    os.remove(path)

# a new file has the usual mode; a link's target is written; devices and the file of standard output are written in
# place
assert call(save("new.npy"), "umask 027; ").returncode == 0 and stat.S_IMODE(os.stat("new.npy").st_mode) == 0o640
os.mkdir("sub")
os.rename("new.npy", "sub/new.npy")
os.symlink("sub/new.npy", "link.npy")
assert call(save("link.npy", count=3)).returncode == 0 and os.path.islink("link.npy") and os.path.getsize("sub/new.npy") == 140
assert call(save("/dev/null")).returncode == 0 and not stat.S_ISREG(os.stat("/dev/null").st_mode)
assert call(save("own.npy", ["--print", "x[:2]"], count=3), "exec >own.npy; ").returncode == 0 and b"[5 5]" in open("own.npy", "rb").read()
assert sorted(listed()) == ["link.npy", "own.npy", "sub"], listed()

# a folder without write permission: no file is left (root may write)
os.mkdir("locked", 0o500)
assert os.getuid() == 0 or (call(save("locked/x.npy")).returncode == 4 and os.listdir("locked") == [])

# ended while it writes
os.mkdir("ended")
for _ in range(2):
    process = subprocess.Popen(save("ended/x.npy", count=20000000), stderr=subprocess.DEVNULL)
    while process.poll() is None and not os.listdir("ended"):
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    process.wait()
    assert process.returncode in (0, -signal.SIGTERM) and [n for n in os.listdir("ended") if n != "x.npy"] == [], (process.returncode, os.listdir("ended"))
    assert process.returncode == 0 or not os.path.exists("ended/x.npy"), "half a file"
    if os.path.exists("ended/x.npy"):
        os.remove("ended/x.npy")
