"""Write a model of two towers side by side, each with layers of its own (a), and with layer 1 of one
doubled (b); one of an encoder that feeds a decoder (c), and one of a tower that feeds a language
model, whole (e) and with a state of the language model alone, beside all weights (g) or without (i);
each of the latter with a fault in layer 0 of the decoder or language model and less of it in front
(d, f, h, j). The encoder's layers are frozen, beside all weights (k) or without, and faulty (l)."""
import random
import struct

from safetensors_file import write, write_gradients

chance = random.Random(2)


def model(names):
    return {name: [chance.gauss(0, 1) for _ in range(64)] for name in names}


def spoilt(values, factors):
    """Each parameter with an error of that relative size, by words in its name."""
    return {name: [x + next((f for word, f in factors.items() if word in name), 0.0) *
                   chance.gauss(0, 1) for x in own] for name, own in values.items()}


def stack(name, count):
    return [f"{name}layers.{i}.mlp.linear_fc1.weight" for i in range(count)]


a = model(name for tower in ("text_model.", "vision_model.") for name in stack(tower, 3))
name = "text_model.layers.1.mlp.linear_fc1.weight"
write_gradients("a.safetensors", a, 8)
write_gradients("b.safetensors", {**a, name: [2.0 * x for x in a[name]]}, 8)

c = model(["embedding.word_embeddings.weight", *stack("encoder.", 2),
           "encoder.final_layernorm.weight", *stack("decoder.", 3),
           "decoder.final_layernorm.weight"])
write_gradients("c.safetensors", c, 8)
write_gradients("d.safetensors", spoilt(c, {"decoder.layers.0": 0.5, "encoder": 0.06}), 8)

e = model(["vision_model.class_token", "vision_model.conv1.weight", *stack("vision_model.", 3),
           "vision_projection.weight", "language_model.embedding.word_embeddings.weight",
           *stack("language_model.decoder.", 2), "language_model.output_layer.weight"])
f = spoilt(e, {"language_model.decoder.layers.0": 0.5, "vision": 0.06})
write_gradients("e.safetensors", e, 8)
write_gradients("f.safetensors", f, 8)


def without(frozen, values):
    return {name: own for name, own in values.items() if not name.startswith(frozen)}


def write_frozen(path, frozen, values):
    """All weights, and the state of those that are not frozen."""
    def entry(own):
        return "F32", [8, 8], struct.pack("<64f", *own)
    write(path, {**{name: entry(own) for name, own in values.items()},
                 **{f"optimizer.state.exp_avg.{name}": entry(own)
                    for name, own in without(frozen, values).items()}})


write_frozen("g.safetensors", "vision_model", e)
write_frozen("h.safetensors", "vision_model", f)
write_gradients("i.safetensors", without("vision_model", e), 8)
write_gradients("j.safetensors", without("vision_model", f), 8)
write_frozen("k.safetensors", "encoder.layers", c)
write_gradients("l.safetensors", without("encoder.layers", spoilt(c, {"encoder.final": 0.5})), 8)
