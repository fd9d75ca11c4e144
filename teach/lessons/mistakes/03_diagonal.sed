# expect: the diagonal of J alone
s/average += a\[i\] \* g\[i\]/average += 0 * g[i]/
s/(g\[i\] - average)/(1 - a[i]) * g[i] + average/
