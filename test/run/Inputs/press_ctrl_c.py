"""press_ctrl_c.py KJIT-RUN FILE.kir DEVICE: runs an endless kernel and sends SIGINT when the launch has reported that
it runs. Repeats this until the signal has arrived while the kernel ran."""
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
    except subprocess.TimeoutExpired:  # it arrived before the launch, so a second signal ends the program
        process.send_signal(signal.SIGINT)
        process.communicate()
        continue
    if process.returncode == 130:
        print(f"exit status {process.returncode}\n{output}")
        break
