# Step 1 with betas (0.9, 0.99) holds a tenth of the gradient that betas (0, 0) hold.
. "$TESTS_CLI/lib.sh"
try data/betas/zero.pt data/betas/usual.pt
try --allow-iterations data/betas/zero.pt data/betas/usual_step3.pt
try --state exp_avg_sq data/betas/zero.pt data/betas/usual.pt
# Groups with betas of their own: no one factor turns a side's averages into the other's.
try data/betas/zero.pt data/betas/mixed.pt
try -q data/betas/mixed.pt data/betas/usual.pt
try -q --allow-same data/betas/mixed.pt data/betas/mixed.pt
