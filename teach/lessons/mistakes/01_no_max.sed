# expect: take the largest
s/exp(x\[i\] - max)/exp(x[i] - 0 * max)/
