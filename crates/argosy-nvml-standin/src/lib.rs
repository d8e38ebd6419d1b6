//! A library with NVML's face and scripted behaviour: tests of the agent load it in place of the driver's.
