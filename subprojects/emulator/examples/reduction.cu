/* The sum of 1, 2, .., 256 by one block: half of the threads add what the other half has, and so
 * on. */
#include <launch.cuh>
#include <stdio.h>

__global__ void reduce(const float *numbers, float *sum)
{
    SHARED(float, part, [256]);
    const unsigned i = threadIdx.x;
    part[i] = numbers[i];
    for (unsigned half = 128; half > 0; half /= 2) {
#ifndef FORGET_THE_BARRIER
        __syncthreads(); /* the other half has written its parts */
#endif
        if (i < half)
            part[i] += part[i + half];
    }
    if (i == 0)
        *sum = part[0];
}

int main()
{
    float numbers[256], sum, *numbers_there, *sum_there;
    for (int i = 0; i < 256; i++)
        numbers[i] = static_cast<float>(i + 1);
    cudaMalloc(&numbers_there, sizeof numbers);
    cudaMalloc(&sum_there, sizeof sum);
    cudaMemcpy(numbers_there, numbers, sizeof numbers, cudaMemcpyHostToDevice);
    LAUNCH(reduce, 1, 256, 0, 0, numbers_there, sum_there);
    cudaMemcpy(&sum, sum_there, sizeof sum, cudaMemcpyDeviceToHost);
    printf("the sum is %g\n", sum);
    return 0;
}
