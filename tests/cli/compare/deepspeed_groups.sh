# Numbers of torch's optimizer, whose groups share shapes, beside the list of groups that DeepSpeed's
# files have; and DeepSpeed's clipping to 1, which no setting in its files tells of.
. "$TESTS_CLI/lib.sh"
d=data/deepspeed
try $d/stage1_groups.pt $d/stage1_groups | sed -n '/^Causes/,$p'
try --state exp_avg_sq -q $d/stage1_groups $d/stage1_groups.pt
# Other groups, and a list that was shuffled, name nothing.
try -q $d/stage1_groups.pt $d/stage1_elastic
try -q $d/stage1_groups.pt $d/stage2_groups
