"""aborts.py COMMAND...: shows the command's output. Fails unless the command ends by SIGABRT."""
import signal
import subprocess
import sys

done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
print(done.stdout)
sys.exit(done.returncode != -signal.SIGABRT)
