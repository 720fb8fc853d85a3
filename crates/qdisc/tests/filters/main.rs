//! Filters: which packets they are for, against models that look at bits one by one.

mod ematch;
mod flower;
mod u32;
