# expect: divide each by the sum
s|y\[i\] /= sum|y[i] *= exp(max)|
