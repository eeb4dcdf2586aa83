"""Write two safetensors files of gradients under names that are meant to break reports."""
from safetensors_file import write_gradients

NAMES = ["<script>alert(1)</script>", "</script><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>",
         "' onmouseover='alert(1)", "]]>--></title>", "&lt;b&gt; &amp;", "`a|b`**c**[d](javascript:e)", "a\nb\tc",
         "\u202eevil\u202c", "::error::%0A%25,:", "\u00e9\u4e2d"]

for file, factor in (("a.safetensors", 1.0), ("b.safetensors", 3.0)):
    write_gradients(file, {f"decoder.layers.{i}.{name}.weight": [
        (factor if i % 2 else 1.0) * (i + j + 1) for j in range(4)] for i, name in enumerate(NAMES)})
