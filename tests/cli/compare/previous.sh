. "$TESTS_CLI/lib.sh"
# Step 3 with other betas: the gradient is recovered from the averages of two steps. `zero` has betas
# (0, 0), so that its exp_avg is the gradient.
d=data/previous
try --previous-a $d/usual_step2.pt $d/usual_step3.pt $d/zero_step3.pt
last() {
    printf '$ gradcmp %s\n' "$*"
    code=0
    gradcmp "$@" 2>&1 | tail -n 1 || :
    gradcmp --quiet "$@" 2>/dev/null || code=$?
    printf '(exit %s)\n\n' "$code"
}
last --previous-b $d/usual_step2.pt $d/zero_step3.pt $d/usual_step3.pt
last --previous-a $d/usual_step2.pt --previous-b $d/other_step2.pt $d/usual_step3.pt $d/other_step3.pt
last --threads 1 --previous-a $d/usual_step2.pt --previous-b $d/other_step2.pt --state exp_avg_sq --dtype bf16 $d/usual_step3.pt $d/other_step3.pt
# A gradient that was doubled at the last step is seen as that; in the averages it is not.
last --previous-a $d/usual_step2.pt --previous-b $d/usual_step2.pt $d/usual_step3.pt $d/wrong_step3.pt
last $d/usual_step3.pt $d/wrong_step3.pt
# Without them: a clear warning.
gradcmp --verbose $d/usual_step3.pt $d/wrong_step3.pt | sed -n '/^Notes/,/^$/p' || :
# What cannot be recovered is refused.
last --previous-a $d/usual_step1.pt $d/usual_step3.pt $d/zero_step3.pt
last --previous-a $d/usual_step3.pt $d/usual_step3.pt $d/zero_step3.pt
last --previous-a $d/usual_step2.pt $d/usual_step3.pt $d/other_step3.pt
last --previous-b $d/other_step2.pt $d/usual_step3.pt $d/other_step3.pt
last --previous-a $d/usual_step2.pt $d/drift_step3.pt $d/zero_step3.pt
last --previous-b $d/usual_step2.pt $d/zero_step3.pt $d/drift_step3.pt
last --state param --previous-a $d/usual_step2.pt $d/usual_step3.pt $d/zero_step3.pt
last --previous-a $d/usual_step2.pt --state exp_avg_sq $d/usual_step3.pt $d/zero_step3.pt
last --previous-a data/betas/usual.pt $d/usual_step3.pt $d/zero_step3.pt
last --previous-a nosuch.pt $d/usual_step3.pt $d/zero_step3.pt
last --previous-b $d/usual_step2.pt $d/zero_step3.pt $d/usual_step3.pt $d/other_step3.pt
# Where beta 1 is 0, newer writers store no exp_avg: the way out is named, and what it can show.
gradcmp extract --state exp_avg_sq $d/zero_step3.pt -o sq.safetensors
last $d/zero_step3.pt sq.safetensors
last --state exp_avg_sq $d/zero_step3.pt sq.safetensors
gradcmp --state exp_avg_sq $d/zero_step3.pt sq.safetensors | sed -n '/^Notes/,/^$/p'
