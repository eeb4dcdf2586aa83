# The model_config.yaml of a functional test: its configurations, their repeats bit for bit, and
# whether the runs did what it says.
. "$TESTS_CLI/lib.sh"
put() {
    mkdir -p "out/$2"
    cp -R "data/megatron/$1/." "out/$2/"
    chmod -R u+w "out/$2"
}
put s_base repeat_1_key_MODEL_ARGS
put s_base repeat_2_key_MODEL_ARGS
put tp2dp2 repeat_1_key_MODEL_ARGS_2
put tp2_perlayer repeat_2_key_MODEL_ARGS_2
cat >model_config.yaml <<'RECIPE'
ENV_VARS:
  CUDA_DEVICE_MAX_CONNECTIONS: 1
BASE: &base
  --num-layers: 4
  --hidden-dropout: 0.0
  --seed: 1234
MODEL_ARGS:
  <<: *base
  --tensor-model-parallel-size: 1
MODEL_ARGS_2:
  <<: *base
  --tensor-model-parallel-size: 4
  --seed: 99
TEST_TYPE: regular
RECIPE
try sweep --plan model_config.yaml out
sed '/size: 4/s/4/2/; /seed: 99/d' model_config.yaml >right.yaml
rm -r out/repeat_2_key_MODEL_ARGS_2
try sweep --plan right.yaml out
put s_base repeat_1_key_OTHER
try sweep --plan right.yaml out
try sweep --plan right.yaml .
mkdir none
try sweep --plan right.yaml none
