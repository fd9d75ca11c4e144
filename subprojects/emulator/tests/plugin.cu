/*
 * Kernels in a shared object that a C program opens, as the library opens its CUDA plug-in.
 */
#include <launch.cuh>

__global__ void neighbours(int *x)
{
    SHARED(int, slot, [64]);
    slot[threadIdx.x] = threadIdx.x;
#ifndef PLANTED_NO_BARRIER
    __syncthreads();
#endif
    x[threadIdx.x] = slot[threadIdx.x ^ 32];
}

/* The sum of 0 .. 63, computed on the device, or minus the error. */
extern "C" __attribute__((visibility("default"))) int sum_on_device()
{
    int *x, met[64], sum = 0;
    if (cudaError_t error = cudaMalloc(&x, sizeof met))
        return -error;
    LAUNCH(neighbours, 1, 64, 0, 0, x);
    if (cudaError_t error = cudaMemcpy(met, x, sizeof met, cudaMemcpyDeviceToHost))
        return -error;
    cudaFree(x);
    for (int number : met)
        sum += number;
    return sum;
}
