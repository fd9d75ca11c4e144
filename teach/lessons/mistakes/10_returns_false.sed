# expect: does project_backward return true?
s/return true/return dx \&\& dw/
