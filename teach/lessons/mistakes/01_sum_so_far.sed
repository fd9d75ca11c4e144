# expect: only the last one is right
s/sum += y\[i\] = exp(x\[i\] - max);/{ sum += exp(x[i] - max); y[i] = exp(x[i] - max) \/ sum; }/
s/y\[i\] \/= sum/sum += 0/
