//! The lanes family.
