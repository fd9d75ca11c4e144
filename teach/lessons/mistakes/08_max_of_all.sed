# expect: must be the largest of the kept ones
s/if (keep\[i\])/if (n > 0)/
