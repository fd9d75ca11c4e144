# expect: go over all n exponentials
s/sum += y\[i\] = exp(x\[i\] - max);/sum += (y[i] = exp(x[i] - max)) * (i > 0);/
