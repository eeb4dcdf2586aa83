gradcmp metrics data/metrics/a data/metrics/ulp
