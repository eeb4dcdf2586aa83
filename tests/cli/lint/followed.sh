# Ways to set variables and to start trainings: followed, or told.
. "$TESTS_CLI/lib.sh"
run='torchrun pretrain_gpt.py --seed 1 --deterministic-mode'
good='export NCCL_ALGO=Ring NVTE_ALLOW_NONDETERMINISTIC_ALGO=0 CUBLAS_WORKSPACE_CONFIG=:4096:8'
verdict() { # SCRIPT: the findings and the last line of it behind good settings
    printf '%s\n%s\n' "$good" "$1" >run.sh
    printf '%s\n' "$1" | sed "s/$run/RUN/"
    { gradcmp lint run.sh || :; } | grep -E '^  (error|warning|info)|^- |^(PASS|WARN|FAIL)'
    echo
}
# Built into the shell.
verdict "eval \"export NCCL_ALGO=Tree\"
$run"
verdict "eval \"$run --tp-comm-overlap\""
verdict "eval \"\$(setup)\"
$run"
verdict "eval \"\$(conda shell.bash hook)\"
$run"
verdict "eval \"\$(pyenv init -)\"
eval \"\$(/usr/bin/modulecmd bash load cuda)\"
eval \$(thefuck --alias)
$run"
verdict "for v in NCCL_ALGO=Tree; do export \"\$v\"; done
$run"
verdict "for v in A=1 NCCL_ALGO=Tree; do export \"\$v\"; done
$run"
verdict "export \$(xargs <.env)
$run"
verdict "read -r -p text NCCL_ALGO <<< Tree
$run"
verdict "printf -v NCCL_ALGO Tree
$run"
verdict "printf '%s' NCCL_ALGO
$run"
verdict "while read -r line; do echo \$line; done <list
$run"
verdict "sh -c 'sh -c \"sh -c \\\"sh -c x\\\"\"'
$run"
verdict "sh -c 'echo \"'
$run"
verdict "cat list | xargs awk '/it\\47s/ { print \"python \\\"\" }'
$run"
# Passed on by launchers.
verdict "docker run --env NCCL_ALGO=Tree image $run"
verdict "docker run --env=NCCL_ALGO=Tree image $run"
verdict "apptainer run --env-file settings image $run"
verdict "mpirun -genv NCCL_ALGO Tree $run"
verdict "mpirun --mca mca_base_env_list 'A=b;NCCL_ALGO=Tree' $run"
verdict "bsub -env 'all,NCCL_ALGO=Tree' $run"
verdict "srun --export ALL,NCCL_ALGO=Tree $run"
verdict "srun --export=ALL $run"
verdict "srun --export=A=b $run"
verdict "srun -e errors.log $run"
verdict "ssh host 'NCCL_ALGO=Tree $run'"
verdict "ssh host NCCL_ALGO=Tree $run"
verdict "pdsh -w 'host[1-2]' 'cd /x; $run'"
verdict "unset NCCL_ALGO NVTE_ALLOW_NONDETERMINISTIC_ALGO CUBLAS_WORKSPACE_CONFIG
ssh host '$good; $run'"
verdict "cat list | xargs -I{} sh -c '$run --tp-comm-overlap'"
verdict "cat hosts | xargs -I{} ssh {} 'NCCL_ALGO=Tree $run --tp-comm-overlap'"
verdict "timeout 60 ssh host 'NCCL_ALGO=Tree $run'"
verdict "$run
ssh host 'cd /x && NCCL_ALGO=Tree ./train.sh'"
verdict "$run
ssh -o 'ProxyCommand nc %h %p' host 'cd /x && A=b ./train.sh'"
verdict "docker run -e NCCL_ALGO --env CUBLAS_WORKSPACE_CONFIG --env=NVTE_ALLOW_NONDETERMINISTIC_ALGO image $run"
verdict "docker run -e NCCL_ALGO -e CUBLAS_WORKSPACE_CONFIG image $run"
verdict "srun --export=NCCL_ALGO,CUBLAS_WORKSPACE_CONFIG,NVTE_ALLOW_NONDETERMINISTIC_ALGO,PATH $run"
verdict "srun --export=NCCL_ALGO,PATH $run"
verdict "apptainer exec --env NCCL_ALGO=Ring,CUBLAS_WORKSPACE_CONFIG=:4096:8 image $run"
verdict "srun singularity exec --env=A=b,NCCL_ALGO=Tree image $run"
verdict "sbatch -N 1 --wrap 'NCCL_ALGO=Tree $run'"
verdict "tmux new-session -d 'NCCL_ALGO=Tree $run'"
# Several trainings.
verdict "$run
torchrun pretrain_gpt.py --seed 1 --tp-comm-overlap"
verdict "if [ \$X = 1 ]; then
    $run
else
    torchrun pretrain_gpt.py --seed 1 --tp-comm-overlap
fi"
verdict "$run
export NCCL_ALGO=Tree
$run"
verdict "if [ \$N = 1 ]; then
    $run
else
    export LOG=x
    torchrun --nnodes \$N pretrain_gpt.py --seed 1 --deterministic-mode
fi"
verdict "python tools/prepare.py --a 1
$run
python tools/convert.py --b 2"
# The batch system.
batch() { # COMMENT: an option before the first command
    (good=$1 && verdict "$run")
}
batch "#SBATCH --export=ALL,NCCL_ALGO=Tree"
batch "#SBATCH --export=\"ALL,NCCL_ALGO=Ring,CUBLAS_WORKSPACE_CONFIG=:4096:8,NVTE_ALLOW_NONDETERMINISTIC_ALGO=0\""
batch "#SBATCH --export='ALL,NCCL_ALGO=Tree' --exclusive"
batch "#PBS -v NCCL_ALGO=\"Tree\",A=b"
batch "# --export=ALL,NCCL_ALGO=Tree"
verdict "#SBATCH --export=ALL,NCCL_ALGO=Tree
$run"
# Behind "--" nothing is an option.
verdict "torchrun pretrain_gpt.py --seed 1 -- --deterministic-mode"
