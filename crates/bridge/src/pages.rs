//! Memory of a small program: where the system gives huge pages unasked, each of the few threads
//! would hold one or two of 2 MiB for some kilobytes.

/// Whether the system may use huge pages for this process and for those that it starts from now on.
/// A system without the setting leaves it as it is.
pub(crate) fn allow_huge(allow: bool) {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(!allow);
    #[cfg(not(target_os = "linux"))]
    let _ = allow;
}
