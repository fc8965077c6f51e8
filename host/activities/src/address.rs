//! Addresses that no name may lead to.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use crate::pattern::HostPattern;

/// True for addresses where machines of a cloud find their credentials, and for those that are no
/// host at all. They are reached only if the allow-list has the address itself.
pub(crate) fn is_refused(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_link_local()
                || address.is_unspecified()
                || address.is_broadcast()
                || address.is_multicast()
                || address == Ipv4Addr::new(100, 100, 100, 200)
                || address == Ipv4Addr::new(192, 0, 0, 192)
        }
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || address.is_unspecified()
                || address.is_multicast()
                || address == Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)
                || translated(address).is_some_and(|inside| is_refused(IpAddr::V4(inside)))
        }
    }
}

/// The IPv4 address inside one of the well-known translation prefix `64:ff9b::/96`.
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() else {
        return None;
    };
    Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
}

/// Looks names up and leaves refused addresses out, so that an allowed name that leads to one does
/// not help.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    pub(crate) allow: Arc<[HostPattern]>,
}

impl Resolver {
    fn keep(&self, address: SocketAddr) -> bool {
        !is_refused(address.ip())
            || self
                .allow
                .iter()
                .any(|pattern| pattern.names_address(address.ip()))
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let kept: Vec<_> = found.filter(|address| resolver.keep(*address)).collect();
            if kept.is_empty() {
                let text = format!("{name} has no address that may be reached");
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
            Ok(kept.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_metadata_services_are_refused_in_every_spelling() {
        let refused = [
            "169.254.169.254",
            "169.254.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "0.0.0.0",
            "::",
            "224.0.0.1",
        ];
        for text in refused {
            assert!(is_refused(text.parse().expect("an address")), "{text}");
        }
        for text in [
            "127.0.0.1",
            "10.0.0.1",
            "::1",
            "93.184.216.34",
            "64:ff9b::5db8:d822",
        ] {
            assert!(!is_refused(text.parse().expect("an address")), "{text}");
        }
    }

    #[tokio::test]
    async fn names_that_lead_to_refused_addresses_are_not_resolved() {
        // An address is a name that needs no network to resolve.
        let name = || "169.254.169.254".parse::<Name>().expect("a name");
        let mut resolver = Resolver {
            allow: Arc::new([]),
        };
        let error = resolver.call(name()).await.expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let own = "169.254.169.254".parse().expect("a pattern");
        let mut resolver = Resolver {
            allow: Arc::new([own]),
        };
        assert_eq!(resolver.call(name()).await.expect("allowed").count(), 1);
    }
}
