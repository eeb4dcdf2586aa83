# Step 1 with betas (0.9, 0.99) holds a tenth of the gradient that betas (0, 0) hold.
. "$TESTS_CLI/lib.sh"
try data/betas/zero.pt data/betas/usual.pt
try --allow-iterations data/betas/zero.pt data/betas/usual_step3.pt
try --state exp_avg_sq data/betas/zero.pt data/betas/usual.pt
