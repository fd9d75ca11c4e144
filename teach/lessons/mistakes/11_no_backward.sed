# expect: sb_backward(loss) computes it
s/sb_backward(loss) && //
s/ok = sb_opt/ok = loss \&\& sb_opt/
