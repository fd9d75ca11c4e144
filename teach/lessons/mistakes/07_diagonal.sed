# expect: counts the diagonal alone
s/cubes += a\[i\] \* a\[i\] \* a\[i\];/cubes += pow(a[i] * (1 - a[i]), 2);/
s/squares - 2 \* cubes + squares \* squares/0 * squares + cubes/
