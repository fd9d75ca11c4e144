# expect: fmaxf passes over it
s/if (isnan(difference) || isnan(gradient\[i\]))/if (isinf(difference))/
