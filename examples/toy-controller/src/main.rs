//! A controller of one's own, added to the registry.

fn main() {}
