// Found only where cuRAND's real header is not installed.
#pragma once
typedef struct curandGenerator_st* curandGenerator_t;
typedef int curandStatus_t;
