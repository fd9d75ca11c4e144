# expect: this is a g
s/(g\[i\] - average)/(g[i] - 0 * average)/
