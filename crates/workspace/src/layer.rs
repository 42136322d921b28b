//! Reading a workspace's raw layer: an overlay's upper directory with its marks, or a full copy
//! against its manifest.
