/* A product on a tensor core: one warp, one instruction; D (16 x 8) = A (16 x 16) B (16 x 8) in
   bf16. tensor_core.cuh has the places of the elements in the registers of the 32 lanes. */
#include <cuda_bf16.h>
#include <launch.cuh>
#include <stdio.h>
#include <tensor_core.cuh>

/* Two bf16 in one register, the first in its lower half. */
static __device__ uint32_t pair(float first, float second)
{
    const __nv_bfloat16 both[2] = {__float2bfloat16(first), __float2bfloat16(second)};
    uint32_t word;
    memcpy(&word, both, sizeof word);
    return word;
}

__global__ void multiply(const float *a, const float *b, float *d)
{
    const unsigned group = threadIdx.x / 4, part = threadIdx.x % 4;
    uint32_t a_here[4], b_here[2];
    for (unsigned i = 0; i < 4; i++) {
        const float *from = a + (group + i % 2 * 8) * 16 + 2 * part + i / 2 * 8;
        a_here[i] = pair(from[0], from[1]);
    }
    for (unsigned i = 0; i < 2; i++) {
        const float *from = b + (2 * part + i * 8) * 8 + group;
        b_here[i] = pair(from[0], from[8]);
    }
    float sum[4] = {};
    mma_m16n8k16_bf16(sum, a_here, b_here);
    for (unsigned i = 0; i < 4; i++)
        d[(group + i / 2 * 8) * 8 + 2 * part + i % 2] = sum[i];
}

int main()
{
    float a[16 * 16], b[16 * 8], d[16 * 8], *a_there, *b_there, *d_there;
    for (int i = 0; i < 16 * 16; i++)
        a[i] = static_cast<float>(i % 7 - 3);
    for (int i = 0; i < 16 * 8; i++)
        b[i] = static_cast<float>(i % 5 - 2);
    cudaMalloc(&a_there, sizeof a);
    cudaMalloc(&b_there, sizeof b);
    cudaMalloc(&d_there, sizeof d);
    cudaMemcpy(a_there, a, sizeof a, cudaMemcpyHostToDevice);
    cudaMemcpy(b_there, b, sizeof b, cudaMemcpyHostToDevice);
    LAUNCH(multiply, 1, 32, 0, 0, a_there, b_there, d_there);
    cudaMemcpy(d, d_there, sizeof d, cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 8; column++) {
            float expected = 0;
            for (int k = 0; k < 16; k++)
                expected += a[row * 16 + k] * b[k * 8 + column];
            wrong += d[row * 8 + column] != expected;
        }
    printf("%d of 128 elements are wrong\n", wrong);
    return wrong > 0;
}
