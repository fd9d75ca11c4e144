# expect: this is p; the 1 of the target
s/ - (i == target)/ - 0 * (float)(i == target)/
