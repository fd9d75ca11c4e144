# expect: each step has a tape of its own
s/^        sb_tape tape;//
s/bool ok = true;/bool ok = true; sb_tape tape;/
s/ok = sb_tape_end(&tape) && ok;//
