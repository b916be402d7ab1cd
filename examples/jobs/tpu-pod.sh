#!/bin/sh
# One process on each host of a Cloud TPU pod slice, all started by one command:
#     TPU=my-slice ZONE=us-central2-b sh tpu-pod.sh python3 examples/processes/two_processes.py
# The repository must be on every host (the same command with `git clone`).
exec gcloud compute tpus tpu-vm ssh "$TPU" --zone="$ZONE" --worker=all --command="$*"
