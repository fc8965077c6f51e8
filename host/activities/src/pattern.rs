//! Which hosts may be reached.

use std::fmt;
use std::net::IpAddr;

/// One entry of the allow-list: `api.example.com`, `api.example.com:8443`, `*.example.com`,
/// `10.0.0.7`, `[::1]:8080`. Without a port, every port is allowed. A `*.` stands for one or more
/// labels, so `*.example.com` allows `a.example.com` and `a.b.example.com`, but not `example.com`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPattern {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    /// This name.
    Exact(String),
    /// Every name that ends in a dot and this.
    Suffix(String),
    /// This address. Written out, it may be one that is refused otherwise.
    Address(IpAddr),
}

/// The text is not a host pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a host pattern such as api.example.com, *.example.com or 10.0.0.7:8080")]
pub struct InvalidPattern {
    /// What was given.
    pub text: String,
}

impl HostPattern {
    /// True if a host of a URL is allowed.
    #[must_use]
    pub fn allows(&self, host: &str, port: u16) -> bool {
        if self.port.is_some_and(|own| own != port) {
            return false;
        }
        let host = normal(host);
        // Digits of an address are no labels of a name: `*.0.0.1` must not allow 127.0.0.1.
        let address = parse_address(&host);
        match &self.host {
            Host::Exact(name) => address.is_none() && host == *name,
            Host::Suffix(suffix) => {
                let rest = host.strip_suffix(suffix.as_str());
                let rest = rest.and_then(|rest| rest.strip_suffix('.'));
                address.is_none() && rest.is_some_and(|rest| !rest.is_empty())
            }
            Host::Address(own) => address == Some(*own),
        }
    }

    /// True if the entry is this very address.
    #[must_use]
    pub fn names_address(&self, address: IpAddr) -> bool {
        self.host == Host::Address(address.to_canonical())
    }
}

/// Lower case, without the dot that marks a name as complete.
fn normal(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// An address as it is written in a URL, where IPv6 has brackets.
pub(crate) fn parse_address(host: &str) -> Option<IpAddr> {
    let inside = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inside
        .unwrap_or(host)
        .parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical())
}

impl std::str::FromStr for HostPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let invalid = || InvalidPattern {
            text: text.to_owned(),
        };
        let (host, port) = split_port(text).ok_or_else(invalid)?;
        let host = normal(host);
        if let Some(address) = parse_address(&host) {
            return Ok(Self {
                host: Host::Address(address),
                port,
            });
        }
        let (is_suffix, name) = match host.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, host.as_str()),
        };
        let is_char = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_char);
        if !name.split('.').all(is_label) {
            return Err(invalid());
        }
        let name = name.to_owned();
        let host = if is_suffix {
            Host::Suffix(name)
        } else {
            Host::Exact(name)
        };
        Ok(Self { host, port })
    }
}

/// Splits `host:port`. A bare IPv6 address has colons of its own, and no port.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    if text.parse::<IpAddr>().is_ok() || text.ends_with(']') {
        return Some((text, None));
    }
    match text.rsplit_once(':') {
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
        None => Some((text, None)),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Exact(name) => f.write_str(name)?,
            Host::Suffix(name) => write!(f, "*.{name}")?,
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_allow_what_they_say_and_nothing_else() {
        let cases = [
            ("api.example.com", "api.example.com", 443, true),
            ("api.example.com", "API.Example.COM.", 8080, true),
            ("api.example.com", "example.com", 443, false),
            ("api.example.com", "xapi.example.com", 443, false),
            ("api.example.com:443", "api.example.com", 443, true),
            ("api.example.com:443", "api.example.com", 80, false),
            ("*.example.com", "a.b.example.com", 443, true),
            ("*.example.com", "example.com", 443, false),
            ("*.example.com", ".example.com", 443, false),
            ("*.example.com", "badexample.com", 443, false),
            ("*.0.0.1", "127.0.0.1", 80, false),
            ("10.0.0.7", "10.0.0.7", 80, true),
            ("10.0.0.7", "10.0.0.70", 80, false),
            ("[::1]:8080", "[0:0::1]", 8080, true),
            ("::1", "[::1]", 1, true),
            ("10.0.0.7", "[::ffff:10.0.0.7]", 80, true),
        ];
        for (pattern, host, port, expected) in cases {
            let parsed: HostPattern = pattern.parse().expect("a pattern");
            assert_eq!(
                parsed.allows(host, port),
                expected,
                "{pattern} and {host}:{port}"
            );
            let printed: HostPattern = parsed.to_string().parse().expect("a pattern");
            assert_eq!(printed, parsed);
        }
    }

    #[test]
    fn other_texts_are_no_patterns() {
        let texts = [
            "",
            "*",
            "*.",
            "a..b",
            "a b",
            "https://a",
            "a:b",
            "a:70000",
            "*.*.com",
            "a/b",
        ];
        for text in texts {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }
}
