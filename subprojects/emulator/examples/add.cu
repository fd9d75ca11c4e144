/* Adds two vectors: one thread for each element, and the last block has threads to spare. */
#include <launch.cuh>
#include <stdio.h>

__global__ void add(const float *a, const float *b, float *sum, int count)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
#ifndef FORGET_THE_END
    if (i < count)
#endif
        sum[i] = a[i] + b[i];
}

int main()
{
    const int count = 1000;
    float a[count], b[count], sum[count];
    for (int i = 0; i < count; i++) {
        a[i] = static_cast<float>(i);
        b[i] = static_cast<float>(1000 * i);
    }
    float *a_there, *b_there, *sum_there;
    cudaMalloc(&a_there, sizeof a);
    cudaMalloc(&b_there, sizeof b);
    cudaMalloc(&sum_there, sizeof sum);
    cudaMemcpy(a_there, a, sizeof a, cudaMemcpyHostToDevice);
    cudaMemcpy(b_there, b, sizeof b, cudaMemcpyHostToDevice);
    LAUNCH(add, (count + 255) / 256, 256, 0, 0, a_there, b_there, sum_there, count);
    const cudaError_t error = cudaMemcpy(sum, sum_there, sizeof sum, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess) {
        printf("%s\n", cudaGetErrorString(error));
        return 1;
    }
    printf("%g + %g = %g\n", a[999], b[999], sum[999]);
    return 0;
}
