"""Write two safetensors files of gradients under names that are meant to break reports."""
import json
import struct

NAMES = ["<script>alert(1)</script>", "</script><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>",
         "' onmouseover='alert(1)", "]]>--></title>", "&lt;b&gt; &amp;", "`a|b`**c**[d](javascript:e)", "a\nb\tc",
         "\u202eevil\u202c", "::error::%0A%25,:", "\u00e9\u4e2d"]

for file, factor in (("a.safetensors", 1.0), ("b.safetensors", 3.0)):
    header, data = {}, b""
    for i, name in enumerate(NAMES):
        values = struct.pack("<4f", *((factor if i % 2 else 1.0) * (i + j + 1) for j in range(4)))
        header[f"optimizer.state.exp_avg.decoder.layers.{i}.{name}.weight"] = {
            "dtype": "F32", "shape": [4], "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)
