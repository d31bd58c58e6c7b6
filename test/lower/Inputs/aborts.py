"""aborts.py COMMAND...: shows what the command says; fails unless it ends by SIGABRT."""
import signal
import subprocess
import sys

done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
print(done.stdout)
sys.exit(done.returncode != -signal.SIGABRT)
