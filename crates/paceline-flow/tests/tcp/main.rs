//! TCP senders and receivers over a small network of their own.

mod bbr;
mod behaviour;
mod net;
mod ns3;
mod pathological;
mod timers;
