//! The qdisc inside the kernel.
mod skeleton;
