# expect: this is y - p
s/dz\[i\] = dz\[i\] \/ sum - (i == target)/dz[i] = (i == target) - dz[i] \/ sum/
