//! What is said of the lab's runs: their results, two of them side by side, and what they prove.

pub mod compare;
pub mod proof;
pub mod reference;
pub mod rows;
