"""The CUDA execution model on a CPU: C++ runtime and headers, and the build that puts an op's text on top."""
