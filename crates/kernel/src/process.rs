//! Processes and threads: their descriptors, their place on the CPUs, and their ends.

pub mod background;
pub mod child;
pub mod descriptors;
pub mod pods;
pub mod processes;
pub mod program;
pub mod sched;
pub mod suspend;
pub mod wait;
