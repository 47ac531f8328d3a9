// Found only where cuSOLVER's real headers are not installed: torch's headers need these types alone.
#pragma once
typedef enum { CUSOLVER_STATUS_SUCCESS = 0 } cusolverStatus_t;
