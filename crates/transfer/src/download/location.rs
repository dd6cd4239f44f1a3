//! URLs: which can be fetched, and where a redirect leads.

use super::DownloadError;
use hyper::Uri;

/// A URL that can be fetched.
#[derive(Debug)]
pub(super) struct Location {
    /// Host name or IP literal, without the brackets of IPv6.
    pub(super) host: String,
    /// The port, by default 80.
    pub(super) port: u16,
    /// The `Host` header: host and port as written.
    pub(super) authority: String,
    /// Path and query, for the request line.
    pub(super) target: Uri,
}

impl Location {
    pub(super) fn parse(url: &str) -> Result<Self, DownloadError> {
        let refuse = |problem: String| DownloadError::Url { url: url.into(), problem };
        let uri: Uri = url.parse().map_err(|error| refuse(format!("not a URL: {error}")))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(refuse("TLS is not supported".into())),
            Some(other) => return Err(refuse(format!("unknown scheme '{other}'"))),
            None => return Err(refuse("no scheme".into())),
        }
        let authority = uri.authority().ok_or_else(|| refuse("no host".into()))?;
        if authority.as_str().contains('@') {
            return Err(refuse("user names and passwords are not supported".into()));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        // `port()` is `None` also for a port beyond 65535.
        let port = match authority
            .as_str()
            .strip_prefix(authority.host())
            .and_then(|rest| rest.strip_prefix(':'))
        {
            Some(_) => authority
                .port_u16()
                .filter(|port| *port != 0)
                .ok_or_else(|| refuse("no such port".into()))?,
            None => 80,
        };
        if host.is_empty() {
            return Err(refuse("no host".into()));
        }
        let target = uri.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from);
        Ok(Location { host: host.into(), port, authority: authority.as_str().into(), target })
    }
}

/// The URL of a `Location` header, relative to `base` (RFC 3986 section 5.2, without removing `.`
/// and `..`, which the server does).
pub(super) fn resolve(base: &str, location: &str) -> Result<String, DownloadError> {
    let here = Location::parse(base)?;
    let location = location.split('#').next().unwrap_or_default();
    let before_query = location.split(['?', '/']).next().unwrap_or_default();
    let url = if before_query.contains(':') {
        location.to_string()
    } else if let Some(elsewhere) = location.strip_prefix("//") {
        format!("http://{elsewhere}")
    } else if location.starts_with('/') {
        format!("http://{}{location}", here.authority)
    } else {
        let path = here.target.path();
        let kept = match location.starts_with('?') || location.is_empty() {
            true => path,
            false => &path[..=path.rfind('/').unwrap_or(0)],
        };
        format!("http://{}{kept}{location}", here.authority)
    };
    Location::parse(&url).map(|_| url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_redirect_leads_where_rfc_3986_says() {
        // RFC 3986 section 5.4.1, with http.
        for (location, leads) in [
            ("http://other/x", "http://other/x"),
            ("g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g/h", "http://g/h"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("/a:b", "http://a/a:b"),
        ] {
            assert_eq!(resolve("http://a/b/c/d;p?q", location).unwrap(), leads, "{location}");
        }
    }

    #[test]
    fn urls_that_cannot_be_fetched_are_refused_with_the_reason() {
        for (url, says) in [
            ("https://a/", "TLS is not supported"),
            ("ftp://a/", "unknown scheme"),
            ("127.0.0.1:80/x", "not a URL"),
            ("/x", "no scheme"),
            ("http://u:p@a/", "passwords"),
            ("http://a:99999/", "no such port"),
            ("http://a:0/", "no such port"),
            ("http:///x", "not a URL"),
            ("http://a/ b", "not a URL"),
            ("", "not a URL"),
        ] {
            let error = Location::parse(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
    }

    #[test]
    fn an_ipv6_literal_has_no_brackets_for_the_resolver_and_some_for_the_server() {
        let location = Location::parse("http://[::1]:8080").unwrap();
        assert_eq!((location.host.as_str(), location.port), ("::1", 8080));
        assert_eq!((location.authority.as_str(), location.target.path()), ("[::1]:8080", "/"));
    }

    proptest! {
        #[test]
        fn any_location_is_followed_or_refused(location in "\\PC*") {
            if let Ok(url) = resolve("http://a/b", &location) {
                prop_assert!(Location::parse(&url).is_ok());
            }
        }
    }
}
