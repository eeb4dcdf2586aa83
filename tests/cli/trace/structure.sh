# Missing, extra and moved operations, and what is no structure at all.
. "$TESTS_CLI/lib.sh"
. "$TESTS_CLI/trace/make.inc"
ops a 0 3 4 5
file=rank00000_iter000001.jsonl

mkdir extra moved short
{
    op 0 1 0 op embed 1 embedding forward 1 2
    op 0 1 1 op neg 1 layers.0.mlp forward 2 2
    op 0 1 2 op combine 1 layers.0.mlp forward 2 9
} >extra/$file
try trace a extra
try trace extra a

{
    op 0 1 0 op combine 1 layers.0.mlp forward 2 3
    op 0 1 1 op embed 1 embedding forward 1 2
    tail -n 2 a/$file
} >moved/$file
try trace a moved

head -n 2 a/$file >short/$file
try trace a short
