"""expect_status.py STATUS COMMAND...: runs the command with stderr redirected to standard output, and fails unless it
exits with STATUS."""
import subprocess
import sys

process = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
sys.stdout.buffer.write(process.stdout)
sys.stdout.flush()
sys.exit(0 if process.returncode == int(sys.argv[1]) else f"expected exit status {sys.argv[1]}, got {process.returncode}")
