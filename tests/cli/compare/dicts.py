"""Write pairs of files of torch.save whose weights stand in or beside other dicts; in the second, they are three times too large."""
from torch_save_file import Tensor, save


def real(value, count=64):
    return Tensor("float32", [count], [value * (1 + i) for i in range(count)])


def layers(factor, count=2):
    return {f"layers.{i}.weight": real(factor) for i in range(count)}


ONE, STEP = Tensor("float32", [], [2.5]), Tensor("int64", [], [3])
OPTIMIZER = {f"state.layers.{i}.weight.exp_avg": real(1) for i in range(2)}
LAYOUTS = {
    "buffers": lambda by: {**layers(by), "rope": {"inv_freq": real(1, 8)}},
    "extra_state": lambda by: {**layers(by), "layers.0.act._extra_state": {"amax": real(1, 8)}},
    "flat_run": lambda by: {**layers(by), "optimizer": OPTIMIZER, "train_state": {"step": STEP, "loss": ONE}},
    "small_model": lambda by: {**layers(by), "model": {"rope": real(1, 8)}},
    "in_model": lambda by: {"model": {"encoder": layers(by), "decoder": layers(by), "scale": ONE}},
    "deep_in_model": lambda by: {"model": {"scale": ONE, "a": {"b": {"c": {"d": {"e": layers(by)}}}}}},
    "only_in_model": lambda by: {"model": {"encoder": layers(by), "decoder": layers(by)}, "ema": layers(1)},
    "names": lambda by: {"model": {"scale": ONE, "ema_proj": layers(by), "up_optim": layers(by), "ema": layers(1)}},
    "criterion": lambda by: {"backbone": layers(by), "loss": layers(by), "down_sampler": layers(by)},
    "two": lambda by: {"encoder": layers(by), "decoder": layers(by), "scale": ONE},
    "one": lambda by: {"weights": layers(by), "metrics": {"loss": ONE}, "rng": {"cpu": STEP}},
    "averaged": lambda by: {**layers(by), "ema": layers(1)},
    "averaged_model": lambda by: {"policy": layers(by), "ema": {"model": layers(1)}},
    "part": lambda by: {"unet": layers(by), "vae": {"model": layers(1, 1)}},
    "trainer": lambda by: {"train_state": {"model": layers(by), "optimizer": OPTIMIZER}, "extra": {"mean": real(1, 8)}},
    "any_words": lambda by: {"policy": layers(1), "history_encoder": layers(by), "sampler": layers(by), "optim_net": layers(1)},
    "beside": lambda by: {
        "policy": layers(by), "train_metrics": {"loss": real(1)}, "loss_history": {"0": real(1)},
        "rng_states": {"x": real(1)}, "scaler_state": {"scale": real(1)},
    },
    "any_in_model": lambda by: {"model": {"dec": layers(1), "sampler": layers(by), "ema": layers(by), "args": layers(1)}},
    "teacher": lambda by: {"trainer": {"model": layers(by), "optimizer": OPTIMIZER}, "teacher": layers(1)},
}
for name, layout in LAYOUTS.items():
    save(f"{name}_a.pt", layout(1))
    save(f"{name}_b.pt", layout(3))
