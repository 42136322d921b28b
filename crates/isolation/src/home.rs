//! The home directory inside: an allow-list of toolchains and caches, each copy-on-write.
