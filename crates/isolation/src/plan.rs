//! The launch plan: every mount, rule and switch in order, as data.
