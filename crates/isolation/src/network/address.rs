//! Which addresses are the public internet, and what the others are.
//!
//! Everything that the IANA special-purpose registries do not call globally reachable is refused,
//! and so are the addresses of cloud metadata services, some of which look public. An IPv6 address
//! that carries an IPv4 one inside is judged by what it carries. Pure; matching against what the
//! user named is `proxy::rules`' job.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of address it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reachable for everybody.
    Public,
    /// This machine.
    Loopback,
    /// `0.0.0.0`, `::` and the rest of "this network"; connecting there reaches this machine.
    Unspecified,
    /// The wire next to this machine.
    LinkLocal,
    /// A cloud's metadata service, which hands out credentials.
    Metadata,
    /// A private network: RFC 1918, shared address space (RFC 6598), unique local (RFC 4193).
    Private,
    /// Many receivers.
    Multicast,
    /// Everybody on the wire.
    Broadcast,
    /// Documentation, benchmarks, tunnels, or not assigned to anybody.
    Reserved,
}

impl Kind {
    /// In words: "127.0.0.1 is …".
    pub(super) fn describe(self) -> &'static str {
        match self {
            Kind::Public => "a public address",
            Kind::Loopback => "a loopback address",
            Kind::Unspecified => "an unspecified address",
            Kind::LinkLocal => "a link-local address",
            Kind::Metadata => "a cloud metadata address",
            Kind::Private => "a private address",
            Kind::Multicast => "a multicast address",
            Kind::Broadcast => "the broadcast address",
            Kind::Reserved => "a reserved address",
        }
    }
}

/// The address itself, out of the `::ffff:0:0/96` clothes in which the socket API dresses IPv4.
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// What kind `address` is.
pub(super) fn kind(address: IpAddr) -> Kind {
    match canonical(address) {
        IpAddr::V4(address) => kind_of_v4(address),
        IpAddr::V6(address) => kind_of_v6(address),
    }
}

fn kind_of_v4(address: Ipv4Addr) -> Kind {
    match address.octets() {
        [169, 254, 169, 254] | [169, 254, 170, 2] => Kind::Metadata,
        // Alibaba's in the shared space, Oracle's in the protocol block, Azure's in public space.
        [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16] => Kind::Metadata,
        [0, ..] => Kind::Unspecified,
        [127, ..] => Kind::Loopback,
        [169, 254, ..] => Kind::LinkLocal,
        [10, ..] | [192, 168, ..] => Kind::Private,
        [172, second, ..] if second & 0xf0 == 16 => Kind::Private,
        [100, second, ..] if second & 0xc0 == 64 => Kind::Private,
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Kind::Reserved
        }
        [198, 18 | 19, ..] => Kind::Reserved,
        [224..=239, ..] => Kind::Multicast,
        [255, 255, 255, 255] => Kind::Broadcast,
        [240..=255, ..] => Kind::Reserved,
        _ => Kind::Public,
    }
}

fn kind_of_v6(address: Ipv6Addr) -> Kind {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => return Kind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => return Kind::Loopback,
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] => return Kind::Metadata,
        [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254] => return Kind::Metadata,
        _ => {}
    }
    if let Some(carried) = carried_v4(segments) {
        return kind_of_v4(carried);
    }
    match segments[0] {
        // Teredo, benchmarking, ORCHID and their kin (2001::/23), documentation.
        0x2001 if segments[1] < 0x0200 || segments[1] == 0x0db8 => Kind::Reserved,
        0x3fff if segments[1] < 0x1000 => Kind::Reserved,
        0x2000..=0x3fff => isatap_v4(segments).map_or(Kind::Public, kind_of_v4),
        0xfc00..=0xfdff => Kind::Private,
        0xfe80..=0xfebf => Kind::LinkLocal,
        // Site-local, deprecated and still routed by some.
        0xfec0..=0xfeff => Kind::Private,
        0xff00..=0xffff => Kind::Multicast,
        _ => carried_by_the_dead(segments).map_or(Kind::Reserved, |kind| match kind {
            Kind::Public => Kind::Reserved,
            other => other,
        }),
    }
}

/// The IPv4 address that a live translation would reach: NAT64's well-known prefix (RFC 6052) and
/// 6to4 (RFC 3056).
fn carried_v4(segments: [u16; 8]) -> Option<Ipv4Addr> {
    match segments {
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => Some(joined(high, low)),
        [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

/// The IPv4 address at the end of an ISATAP tunnel (RFC 5214), whatever prefix it hangs from.
fn isatap_v4(segments: [u16; 8]) -> Option<Ipv4Addr> {
    match segments {
        [_, _, _, _, 0x0000 | 0x0200, 0x5efe, high, low] => Some(joined(high, low)),
        _ => None,
    }
}

/// What the abandoned embeddings carry, IPv4-compatible and IPv4-translated: never public, but a
/// refusal should say what it looked like.
fn carried_by_the_dead(segments: [u16; 8]) -> Option<Kind> {
    match segments {
        [0, 0, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Some(kind_of_v4(joined(high, low)))
        }
        _ => None,
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Kind {
        kind(text.parse().unwrap())
    }

    /// Every block of the registries with its first and last address, and the neighbours outside.
    #[test]
    fn every_special_block_is_known_to_its_edges() {
        let blocks: &[(Kind, &[&str])] = &[
            (
                Kind::Unspecified,
                &["0.0.0.0", "0.0.0.1", "0.255.255.255", "::"],
            ),
            (
                Kind::Loopback,
                &[
                    "127.0.0.0",
                    "127.0.0.1",
                    "127.1.2.3",
                    "127.255.255.255",
                    "::1",
                ],
            ),
            (
                Kind::LinkLocal,
                &["169.254.0.0", "169.254.169.253", "169.254.255.255"],
            ),
            (Kind::LinkLocal, &["fe80::", "fe80::1", "febf:ffff::"]),
            (
                Kind::Metadata,
                &["169.254.169.254", "169.254.170.2", "100.100.100.200"],
            ),
            (
                Kind::Metadata,
                &[
                    "168.63.129.16",
                    "192.0.0.192",
                    "fd00:ec2::254",
                    "fd20:ce::254",
                ],
            ),
            (
                Kind::Private,
                &[
                    "10.0.0.0",
                    "10.255.255.255",
                    "192.168.0.0",
                    "192.168.255.255",
                ],
            ),
            (
                Kind::Private,
                &[
                    "172.16.0.0",
                    "172.31.255.255",
                    "100.64.0.0",
                    "100.127.255.255",
                ],
            ),
            (
                Kind::Private,
                &["fc00::", "fdff:ffff::1", "fec0::1", "feff::"],
            ),
            (
                Kind::Multicast,
                &[
                    "224.0.0.0",
                    "239.255.255.255",
                    "ff00::",
                    "ff02::1",
                    "ffff::",
                ],
            ),
            (Kind::Broadcast, &["255.255.255.255"]),
            (
                Kind::Reserved,
                &["192.0.0.0", "192.0.0.255", "192.0.2.0", "192.0.2.255"],
            ),
            (
                Kind::Reserved,
                &[
                    "192.88.99.1",
                    "198.18.0.0",
                    "198.19.255.255",
                    "198.51.100.7",
                ],
            ),
            (
                Kind::Reserved,
                &[
                    "203.0.113.0",
                    "203.0.113.255",
                    "240.0.0.0",
                    "255.255.255.254",
                ],
            ),
            (
                Kind::Reserved,
                &[
                    "2001::",
                    "2001:0:53aa:64c::1",
                    "2001:1ff:ffff::",
                    "2001:2::1",
                ],
            ),
            (
                Kind::Reserved,
                &["2001:10::1", "2001:20::1", "2001:db8::", "2001:db8:ffff::1"],
            ),
            (
                Kind::Reserved,
                &["3fff::", "3fff:fff::1", "100::1", "4000::1", "1fff::1"],
            ),
            (
                Kind::Reserved,
                &["5f00::1", "64:ff9b:1::a00:1", "fbff::1", "fe00::1"],
            ),
            (
                Kind::Public,
                &["1.0.0.0", "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0"],
            ),
            (
                Kind::Public,
                &[
                    "100.63.255.255",
                    "100.128.0.0",
                    "126.255.255.255",
                    "128.0.0.0",
                ],
            ),
            (
                Kind::Public,
                &[
                    "169.253.255.255",
                    "169.255.0.0",
                    "172.15.255.255",
                    "172.32.0.0",
                ],
            ),
            (
                Kind::Public,
                &[
                    "191.255.255.255",
                    "192.0.1.0",
                    "192.0.3.0",
                    "192.167.255.255",
                ],
            ),
            (
                Kind::Public,
                &[
                    "192.169.0.0",
                    "198.17.255.255",
                    "198.20.0.0",
                    "223.255.255.255",
                ],
            ),
            (
                Kind::Public,
                &["168.63.129.15", "192.88.98.255", "192.88.100.0"],
            ),
            (
                Kind::Public,
                &[
                    "2000::",
                    "2001:200::",
                    "2001:4860:4860::8888",
                    "2606:4700::1111",
                ],
            ),
            (
                Kind::Public,
                &[
                    "2001:db7::1",
                    "2001:db9::1",
                    "2003::1",
                    "3ffe::1",
                    "3fff:1000::1",
                ],
            ),
        ];
        for (wanted, addresses) in blocks {
            for address in *addresses {
                assert_eq!(of(address), *wanted, "{address}");
            }
        }
    }

    #[test]
    fn an_address_inside_an_address_is_judged_by_what_it_carries() {
        let wrapped = [
            ("::ffff:127.0.0.1", Kind::Loopback),
            ("::ffff:169.254.169.254", Kind::Metadata),
            ("::ffff:8.8.8.8", Kind::Public),
            ("::127.0.0.1", Kind::Loopback),
            ("::10.0.0.1", Kind::Private),
            ("::8.8.8.8", Kind::Reserved),
            ("::ffff:0:127.0.0.1", Kind::Loopback),
            ("::ffff:0:8.8.8.8", Kind::Reserved),
            ("64:ff9b::127.0.0.1", Kind::Loopback),
            ("64:ff9b::169.254.169.254", Kind::Metadata),
            ("64:ff9b::10.1.2.3", Kind::Private),
            ("64:ff9b::8.8.8.8", Kind::Public),
            ("2002:7f00:1::", Kind::Loopback),
            ("2002:a9fe:a9fe::1", Kind::Metadata),
            ("2002:c0a8:101::1", Kind::Private),
            ("2002:808:808::1", Kind::Public),
            ("2606:4700::5efe:10.0.0.1", Kind::Private),
            ("2606:4700::200:5efe:127.0.0.1", Kind::Loopback),
            ("fe80::5efe:8.8.8.8", Kind::LinkLocal),
        ];
        for (address, wanted) in wrapped {
            assert_eq!(of(address), wanted, "{address}");
        }
    }

    proptest! {
        #[test]
        fn no_wrapping_makes_an_address_more_public(bits: u32) {
            let [a, b, c, d] = bits.to_be_bytes();
            let plain = kind(IpAddr::V4(Ipv4Addr::from(bits)));
            let wrappings = [
                format!("::ffff:{a}.{b}.{c}.{d}"),
                format!("::{a}.{b}.{c}.{d}"),
                format!("::ffff:0:{a}.{b}.{c}.{d}"),
                format!("64:ff9b::{a}.{b}.{c}.{d}"),
                format!("2002:{:x}:{:x}::1", bits >> 16, bits & 0xffff),
                format!("2a00::5efe:{a}.{b}.{c}.{d}"),
            ];
            for wrapping in wrappings {
                let wrapped = of(&wrapping);
                prop_assert!(wrapped == plain || wrapped != Kind::Public, "{}", wrapping);
            }
        }
    }
}
