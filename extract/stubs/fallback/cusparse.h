// Found only where cuSPARSE's real header is not installed: torch's headers need the handle's type alone.
#pragma once
typedef struct cusparseContext* cusparseHandle_t;
typedef enum { CUSPARSE_STATUS_SUCCESS = 0 } cusparseStatus_t;
