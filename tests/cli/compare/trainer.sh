# Folders of transformers' Trainer: the optimizer numbers its parameters, and safetensors files have lost
# the order of the weights that would name them. Numbers are compared; weights have their names.
. "$TESTS_CLI/lib.sh"
d=data/torch_save
gradcmp $d/trainer $d/trainer_two | tail -n 20
try -q $d/trainer_two $d/trainer_bug
try -q $d/trainer/checkpoint-1/optimizer.pt $d/trainer_bug
try -q --state param $d/trainer $d/trainer_two
# With the numbers alone, what is compared is the same.
try -q $d/trainer/checkpoint-1/optimizer.pt $d/trainer_bug/checkpoint-1/optimizer.pt
# Several candidates, one of them of another model.
try -q $d/trainer $d/trainer_two $d/groups.pt $d/trainer_bug
# An extract keeps the numbers, and is compared as its source is.
gradcmp extract $d/trainer -o trainer.safetensors
try -q trainer.safetensors $d/trainer_bug
# The Trainer's export of the weights stands beside the tracker of DeepSpeed, which names more.
mkdir zero
cp -R data/deepspeed/stage3/* zero
cp $d/trainer/checkpoint-1/model.safetensors zero
try -q data/deepspeed/stage3 zero
rm -r zero/global_step1
try -q --state param $d/trainer zero
