//! TLS as a client: whom to trust, and which protocol to offer.

use super::{GetError, GetOptions};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore,
    SignatureScheme,
};
use std::path::Path;
use std::sync::Arc;

/// The configuration of every TLS connection of a download.
pub(super) fn configuration(options: &GetOptions) -> Result<Arc<ClientConfig>, GetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| failed("any host", &error.to_string()))?;
    let mut config = if options.insecure {
        let anyone = Arc::new(Anyone(provider));
        builder.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth()
    } else if let Some(path) = &options.cacert {
        let named = Arc::new(Named::read(path, provider)?);
        builder.dangerous().with_custom_certificate_verifier(named).with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = match options.http1_only {
        true => vec![b"http/1.1".to_vec()],
        false => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    Ok(Arc::new(config))
}

/// Trusts the authorities in the file of `--cacert`, and a server whose own certificate is in it.
///
/// The latter may say that it is an authority, as `openssl req -x509` makes it. RFC 5280 (4.2.1.9)
/// lets such a key sign certificates and says nothing against a server's using it; webpki refuses
/// it, curl does not, and whoever names the certificate itself means it.
#[derive(Debug)]
struct Named {
    authorities: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Named {
    fn read(path: &Path, provider: Arc<CryptoProvider>) -> Result<Self, GetError> {
        Named::try_read(path, provider).map_err(|problem| GetError::Option {
            option: "--cacert",
            value: path.display().to_string(),
            must: format!("{problem}; name a file with certificates in PEM"),
        })
    }

    fn try_read(path: &Path, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| error.to_string())?;
        let mut roots = RootCertStore::empty();
        for one in &certificates {
            roots.add(one.clone()).map_err(|error| error.to_string())?;
        }
        if roots.is_empty() {
            return Err("no certificate in it".into());
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Named { authorities, certificates })
    }
}

/// Whether all that webpki has against a certificate is that it may sign others. It looks at the
/// period of validity first.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) = error
    else {
        return false;
    };
    matches!(cause.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found =
            self.authorities.verify_server_cert(certificate, intermediates, name, ocsp, now);
        match found {
            Err(error) if is_authority(&error) && self.certificates.contains(certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            found => found,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// A TLS error, and what to try.
pub(super) fn failed(host: &str, error: &str) -> GetError {
    // What webpki says of a certificate that its server signed itself is a name of its source code.
    let (problem, advice) = if error.contains("CaUsedAsEndEntity") {
        (
            "the server signed its certificate itself",
            "name that very certificate with --cacert FILE, or trust anyone with -k",
        )
    } else {
        (error, advice(error))
    };
    GetError::Tls { host: host.into(), problem: problem.into(), advice }
}

/// What to try after a TLS error.
fn advice(error: &str) -> &'static str {
    let error = error.to_ascii_lowercase();
    if error.contains("certificate") {
        "name its authority with --cacert FILE, install ca-certificates, or trust anyone with -k"
    } else if error.contains("corrupt message") || error.contains("invalid") {
        "does the server speak TLS on this port? try http://"
    } else {
        "try again, or see what `openssl s_client -connect` says"
    }
}

/// Trusts every certificate (`-k`); signatures are still checked.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    #[allow(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]
    fn a_servers_own_certificate_is_trusted_within_its_time_and_for_its_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("cert.pem");
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-nodes", "-days", "2", "-subj", "/CN=test"])
            .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out"])
            .arg(&path)
            .current_dir(place.path())
            .output();
        let Ok(made) = made else {
            eprintln!("SKIPPED: openssl is not installed");
            return assert!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "openssl is missing");
        };
        assert!(made.status.success(), "{made:?}");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let named = Named::read(&path, provider).unwrap();
        let certificate = named.certificates[0].clone();
        let verify = |named: &Named, name: &'static str, now| {
            let name = ServerName::try_from(name).unwrap();
            named.verify_server_cert(&certificate, &[], &name, &[], now).map(|_| ())
        };
        let now = UnixTime::now();
        verify(&named, "127.0.0.1", now).unwrap();
        verify(&named, "127.0.0.2", now).unwrap_err();
        let later = Duration::from_secs(now.as_secs() + 3 * 86_400);
        verify(&named, "127.0.0.1", UnixTime::since_unix_epoch(later)).unwrap_err();
        // Another authority's file does not vouch for it.
        let other = Named { certificates: Vec::new(), ..named };
        let refused = verify(&other, "127.0.0.1", now).unwrap_err();
        let told = failed("test", &refused.to_string()).to_string();
        assert!(told.contains("the server signed its certificate itself"), "{told}");
    }
}
