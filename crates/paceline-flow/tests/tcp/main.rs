//! TCP senders and receivers over a small network of their own.

mod behaviour;
mod net;
mod pathological;
mod timers;
