//! Placeholder until the first real code lands.
fn main() {}
