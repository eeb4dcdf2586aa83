A=(1 "2 3" $B)
A+=(x)
cat <<-E 2>&1
x
	E
X=${A[@]} Y=${Z:-${W:-"q}"}} env -u B C=1 srun --export=ALL,D=2 bash -c "python \"train.py\" --s=$1 ${A#x} `date`" ; set -a; [[ a < b ]] && (echo $((1+2)))
