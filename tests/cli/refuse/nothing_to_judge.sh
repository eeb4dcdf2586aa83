# What cannot be compared is never a pass.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
try --state momentum s_base tp2dp2
try --state main_grad s_base tp2dp2
try --match nothing_has_this_name s_base tp2dp2
try --match '(' s_base tp2dp2
try --exclude . s_base tp2dp2
