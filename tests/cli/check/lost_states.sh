# Every parameter that lost one of its moments is named.
. "$TESTS_CLI/lib.sh"
ln -s data/dcp/lost_states .
try check lost_states
try -q --allow-same lost_states lost_states
