// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the shared library the name by which programs find it: one for each version with an interface of its own.

fn main() {
    let part = |name: &str| std::env::var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpaceline_c.so.{}.{}", part("MAJOR"), part("MINOR"));
    }
    println!("cargo::rerun-if-changed=build.rs");
}
