// Found only where cuBLAS's real headers are not installed: torch's headers need the handle's type alone.
#pragma once
#include "cublas_v2.h"
typedef struct cublasLtContext* cublasLtHandle_t;
