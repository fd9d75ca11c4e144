# expect: on paper, p cancels
s/dz\[i\] = dz\[i\] \/ sum - (i == target)/dz[i] = dz[i] \/ sum * ((i == target ? -1 \/ (expf(z[target] - max) \/ sum) : 0) + expf(z[target] - max) \/ expf(z[target] - max))/
