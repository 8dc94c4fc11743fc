//! The console's built files are embedded; a new build of them must be a new build of the binary.
fn main() {
    println!("cargo:rerun-if-changed=../../web/dist");
}
