//! TLS as a client: whom to trust, and which protocol to offer.

use super::{GetError, GetOptions};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// The configuration of every TLS connection of a download.
pub(super) fn configuration(options: &GetOptions) -> Result<Arc<ClientConfig>, GetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| GetError::Tls { host: "any host".into(), problem: error.to_string() })?;
    let mut config = if options.insecure {
        let anyone = Arc::new(Anyone(provider));
        builder.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(options.cacert.as_deref())?).with_no_client_auth()
    };
    config.alpn_protocols = match options.http1_only {
        true => vec![b"http/1.1".to_vec()],
        false => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    Ok(Arc::new(config))
}

fn roots(cacert: Option<&Path>) -> Result<RootCertStore, GetError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = cacert else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        return Ok(roots);
    };
    let refuse = |problem: String| GetError::Option {
        option: "--cacert",
        value: path.display().to_string(),
        must: format!("{problem}; name a file with certificates in PEM"),
    };
    let all = CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?;
    for one in all {
        let one = one.map_err(|error| refuse(error.to_string()))?;
        roots.add(one).map_err(|error| refuse(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refuse("no certificate in it".into()));
    }
    Ok(roots)
}

/// What to try after a TLS error.
pub(super) fn advice(error: &str) -> &'static str {
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
