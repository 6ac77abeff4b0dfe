#!/bin/bash
# A search as a Slurm job that survives its time limit and preemption: it is asked to stop three minutes before, saves
# its state, and the job is put back into the queue until the search has ended.
#
#     sbatch scripts/slurm.sh --task xland-easy --name first --candidates 100
#
# Everything after the script is for `jaxreward evolve`; --name is needed, for every start goes on with that run.
# Options of Slurm go before the script: sbatch --time=12:00:00 --gres=gpu:1 scripts/slurm.sh ...
# A job of several nodes (sbatch --nodes=2 --gres=gpu:4 ...) begins a Ray cluster of them, on which the search trains.
#SBATCH --job-name=jaxreward
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=jaxreward-%j.log
set -u

case " $* " in
*" --name "* | *" --name="*) ;;
*)
	echo "slurm.sh: say --name NAME, by which the job finds its run again when it is requeued" >&2
	exit 2
	;;
esac

jaxreward=${JAXREWARD:-jaxreward}
warned=

# Bash hands no signal on to a program that it waits for: the search runs beside it, and is told. Slurm sends USR1 before
# the time is up, TERM where the job is preempted.
search=
trap 'warned=1; [ -z "$search" ] || kill -USR1 "$search" 2>/dev/null' USR1 TERM

if [ "${SLURM_NNODES:-1}" -gt 1 ]; then
	trap 'kill $(jobs -p) 2>/dev/null' EXIT
	ray=$(command -v "$jaxreward")
	ray=${ray%/*}/ray
	[ -x "$ray" ] || ray=ray
	if token=$("$ray" get-auth-token --generate 2>/dev/null); then # which older versions of Ray do not know
		export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$token
	fi
	head=${SLURMD_NODENAME:-$(hostname)} # a job's script runs on its first node
	address=$head:$((20000 + ${SLURM_JOB_ID:-0} % 10000))
	others=$((SLURM_NNODES - 1))
	# A step on all CPUs that the job has on each node, beside this script.
	step="srun --overlap --cpus-per-task=${SLURM_CPUS_PER_TASK:-1}"
	$step --nodes=1 --ntasks=1 --nodelist="$head" "$ray" start --head --port="${address##*:}" --block &
	for _ in $(seq 60); do
		[ -z "$warned" ] && ! "$ray" status --address="$address" >/dev/null 2>&1 || break
		sleep 2
	done
	$step --nodes="$others" --ntasks="$others" --exclude="$head" "$ray" start --address="$address" --block &
	set -- "$@" --executor ray --ray-address "$address"
fi

status=75
if [ -z "$warned" ]; then
	"$jaxreward" evolve "$@" --resume &
	search=$!
	# `wait` returns when a signal arrives, long before the search has saved its state.
	while true; do
		warned=
		wait "$search"
		status=$?
		[ -n "$warned" ] || break
	done
fi

# 75: the work is unfinished and can go on. 138 and 143: the warning came before the search could listen.
case "$status" in
75 | 138 | 143)
	echo "slurm.sh: unfinished, back into the queue"
	# The id of one job of an array is that of the whole array, so it is named by its place there.
	job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
	job=${job:-${SLURM_JOB_ID:-}}
	[ -n "$job" ] && scontrol requeue "$job" && exit 0
	echo "slurm.sh: it could not be requeued; the same command goes on with the run" >&2
	exit 75
	;;
esac
exit "$status"
