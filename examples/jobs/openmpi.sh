#!/bin/sh
# One process on each host; without HOSTS, two on this machine:
#     HOSTS=host0,host1 sh openmpi.sh python examples/processes/two_processes.py
# mpirun reaches the other hosts by ssh. -x hands a variable on to them.
exec mpirun --host "${HOSTS:-localhost:2}" -x JAX_NUM_CPU_DEVICES "$@"
