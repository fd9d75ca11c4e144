/* Attention against PyTorch. */
#include "tests/support/test.h"
#include <stdio.h>

static sb_tensor *golden(const sb_safetensors *file, const char *name, const char *key)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%s", name, key);
    return sb_safetensors_find(file, full) < 0 ? NULL : sb_safetensors_tensor(file, full);
}

static void expect_golden(const sb_safetensors *file, const char *name, sb_tensor *t,
                          const char *key)
{
    sb_tensor *expected = KEPT(golden(file, name, key));
    cr_expect(test_relative(t, expected) < 1e-13, "%s.%s differs by %g", name, key,
              test_relative(t, expected));
}

/* Values and gradients as in tests/golden/make_attention.py. */
TEST(attention, values_and_gradients_agree_with_pytorch)
{
    sb_safetensors *file = KEPT(sb_safetensors_open(test_path("golden/attention.safetensors")));
    const char *const names[] = {"plain", "causal", "groups", "bias", "allowed"};
    const char *const leaves[] = {"q", "k", "v", "bias"}, *const grads[] = {"dq", "dk", "dv",
                                                                            "dbias"};
    for (int n = 0; n < 5; n++) {
        TAPE(SB_RECORD);
        sb_tensor *x[4];
        for (int i = 0; i < 4; i++)
            if ((x[i] = golden(file, names[n], leaves[i])))
                sb_tape_own(sb_tensor_requires_grad(x[i]));
        sb_tensor *allowed = golden(file, names[n], "allowed"), *dy = golden(file, names[n], "dy");
        sb_attention_options o = {.layout = SB_LAYOUT_HEADS_FIRST, .bias = x[3]};
        o.scale = n == 2 ? 0.3 : 0;
        o.mask = n == 1 ? sb_mask_causal() : n == 4 ? sb_mask_allow(sb_tape_own(allowed)) : NULL;
        sb_tensor *y = sb_keep(sb_attention(x[0], x[1], x[2], &o));
        MUST(sb_backward_from(y, sb_tape_own(dy)));
        expect_golden(file, names[n], y, "y");
        for (int i = 0; i < 4 && x[i]; i++)
            expect_golden(file, names[n], sb_tensor_grad(x[i]), grads[i]);
    }
}
