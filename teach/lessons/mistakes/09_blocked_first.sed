# expect: -inf - -inf is NaN
s/if (max == -INFINITY)/if (n == 0)/
