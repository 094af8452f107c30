// DDP_HOST_DEVICE marks functions that kernels on the GPU call as well as host code, so that the
// arithmetic of a step is written once.
#pragma once

#ifdef __CUDACC__
#define DDP_HOST_DEVICE __host__ __device__
#else
#define DDP_HOST_DEVICE
#endif
