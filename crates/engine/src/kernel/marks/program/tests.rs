//! The program itself, run by the kernel on frames of a test's choice.
