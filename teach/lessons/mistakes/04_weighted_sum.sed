# expect: you subtracted a_i times the sum of ds
s|mean += ds\[i\] / (float)n|mean += ds[i]|
s|ds\[i\] -= mean|ds[i] -= a[i] * mean|
