//! Controllers outside the program, and the fuzz targets.

#[cfg(unix)]
mod exec;
mod fuzz;
#[cfg(unix)]
mod library;
