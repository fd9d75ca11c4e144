# expect: Take the logarithm on paper first
s/return logf(sum) + (max - z\[target\])/return -logf(expf(z[target] - max) \/ sum)/
