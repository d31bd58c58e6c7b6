"""press_ctrl_c.py KJIT-RUN FILE.kir DEVICE: an endless kernel, and SIGINT once the launch says that it runs; again and again until it
has come while the kernel ran."""
import signal
import subprocess
import sys
import time

tool, path, device = sys.argv[1:]
for wait in (0.5, 1, 2, 4, 8, 16, 32):
    process = subprocess.Popen([tool, path, "-q", "--interruptible", "yes", "--device", device, "-a", "x=zeros:i32[64]", "-l", "endless(x)"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    try:
        output = process.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:  # before the launch: the second one ends the program
        process.send_signal(signal.SIGINT)
        process.communicate()
        continue
    if process.returncode == 130:
        print(f"exit status {process.returncode}\n{output}")
        break
