gradcmp metrics --json - data/metrics/a data/metrics/ulp
