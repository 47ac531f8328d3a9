// Found only where cuSOLVER's real headers are not installed: torch's headers need the handle's type alone.
#pragma once
#include "cusolver_common.h"
typedef struct cusolverDnContext* cusolverDnHandle_t;
