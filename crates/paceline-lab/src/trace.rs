//! Reading recorded capacity traces. Under construction.
