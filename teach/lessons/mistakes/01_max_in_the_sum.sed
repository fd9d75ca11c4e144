# expect: in one of two places
s/y\[i\] \/= sum/y[i] = exp(x[i]) \/ sum/
