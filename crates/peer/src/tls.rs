//! TLS 1.3 between two ends that know each other's public key (RFC 8446, raw public keys of RFC
//! 7250).
//!
//! rustls does the protocol and ring the cryptography; what is here is the decision whom to trust:
//! the one key of a daemon that a client was told, and the list of clients that a daemon was told.

use crate::{PrivateKey, PublicKey};
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer,
    UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use std::sync::Arc;

/// Accepts the keys of a list.
#[derive(Debug)]
struct Pinned {
    keys: Vec<PublicKey>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(keys: Vec<PublicKey>) -> Arc<Pinned> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        Arc::new(Pinned { keys, algorithms })
    }

    fn check(&self, der: &CertificateDer<'_>) -> Result<(), Error> {
        match PublicKey::of_spki(der) {
            Some(key) if self.keys.contains(&key) => Ok(()),
            Some(_) => Err(CertificateError::ApplicationVerificationFailure.into()),
            None => Err(CertificateError::BadEncoding.into()),
        }
    }

    fn signature(
        &self,
        message: &[u8],
        der: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(der.as_ref());
        rustls::crypto::verify_tls13_signature_with_raw_key(
            message,
            &spki,
            signed,
            &self.algorithms,
        )
    }
}

/// Only TLS 1.3 is configured.
fn no_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2 is not used here".into()))
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(key).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(key).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// The application protocol (RFC 7301) of a relay's carriers. A control connection names none.
pub(super) const RELAY: &[u8] = b"fullpipe-relay";

/// The same client for a relay's carrier.
pub(super) fn for_carriers(config: &ClientConfig) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.alpn_protocols = vec![RELAY.to_vec()];
    Arc::new(config)
}

/// The same daemon, which takes a relay's carriers, too.
pub(super) fn with_carriers(config: &ServerConfig) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.alpn_protocols = vec![RELAY.to_vec()];
    Arc::new(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Our key as rustls wants it.
fn certified(key: &PrivateKey) -> Result<Arc<CertifiedKey>, Error> {
    let public = key.public().ok_or_else(|| Error::General("the key is not valid".into()))?;
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.pkcs8()));
    let signing = provider().key_provider.load_private_key(der)?;
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(public.spki())], signing)))
}

/// The configuration of a client with `own` key, for the daemon that has `server`'s.
pub(super) fn client(own: &PrivateKey, server: PublicKey) -> Result<Arc<ClientConfig>, Error> {
    let resolver = AlwaysResolvesClientRawPublicKeys::new(certified(own)?);
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Pinned::new(vec![server]))
        .with_client_cert_resolver(Arc::new(resolver));
    Ok(Arc::new(config))
}

/// The configuration of a daemon with `own` key, for clients that have one of `allowed`.
pub(super) fn server(
    own: &PrivateKey,
    allowed: Vec<PublicKey>,
) -> Result<Arc<ServerConfig>, Error> {
    let resolver = AlwaysResolvesServerRawPublicKeys::new(certified(own)?);
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Pinned::new(allowed))
        .with_cert_resolver(Arc::new(resolver));
    // A session is short and a handshake cheap: no ticket lets a removed key in again.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
