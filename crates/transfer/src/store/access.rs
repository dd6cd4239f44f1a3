//! Who we are to a store, and where it is: as AWS's own programs find it.

use rusty_s3::Credentials;
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// What leads to a store.
///
/// `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, `AWS_REGION` or `AWS_DEFAULT_REGION`,
/// `AWS_CA_BUNDLE`; and the key: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and
/// `AWS_SESSION_TOKEN`, or else the section `AWS_PROFILE` (`default`) of the file
/// `AWS_SHARED_CREDENTIALS_FILE` (`~/.aws/credentials`). Not asked: the metadata of a virtual
/// machine, and token services.
#[derive(Clone)]
pub struct StoreAccess {
    pub(super) endpoint: Option<String>,
    pub(super) region: Option<String>,
    /// A file of certificates to trust instead of the machine's, in PEM.
    pub(super) authorities: Option<PathBuf>,
    key: Option<Credentials>,
    file: Option<PathBuf>,
    profile: String,
}

impl fmt::Debug for StoreAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoreAccess { endpoint, region, file, profile, .. } = self;
        f.debug_struct("StoreAccess")
            .field("endpoint", endpoint)
            .field("region", region)
            .field("file", file)
            .field("profile", profile)
            .finish_non_exhaustive()
    }
}

impl StoreAccess {
    /// What `variable` says, which reads the environment.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> StoreAccess {
        let key = set(&variable, "AWS_ACCESS_KEY_ID").zip(set(&variable, "AWS_SECRET_ACCESS_KEY"));
        let key = key.map(|(key, secret)| match set(&variable, "AWS_SESSION_TOKEN") {
            Some(token) => Credentials::new_with_token(key, secret, token),
            None => Credentials::new(key, secret),
        });
        let home = set(&variable, "HOME").map(|home| PathBuf::from(home).join(".aws/credentials"));
        StoreAccess {
            endpoint: set(&variable, "AWS_ENDPOINT_URL_S3")
                .or_else(|| set(&variable, "AWS_ENDPOINT_URL")),
            region: set(&variable, "AWS_REGION").or_else(|| set(&variable, "AWS_DEFAULT_REGION")),
            authorities: set(&variable, "AWS_CA_BUNDLE").map(PathBuf::from),
            key,
            file: set(&variable, "AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from).or(home),
            profile: set(&variable, "AWS_PROFILE").unwrap_or_else(|| "default".into()),
        }
    }

    /// The key, of the environment or of the file as it is now; or what to set.
    pub(super) fn credentials(&self) -> Result<Credentials, String> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        let hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
        let Some(file) = &self.file else { return Err(format!("there is no key: {hint}")) };
        let text = fs::read_to_string(file).map_err(|cause| {
            format!("there is no key: {hint}, or mend {}: {cause}", file.display())
        })?;
        of_file(&text, &self.profile).ok_or_else(|| {
            let (file, profile) = (file.display(), &self.profile);
            format!("there is no key of [{profile}] in {file}: add it there, or {hint}")
        })
    }
}

/// What a variable has; empty is as good as not set.
fn set(variable: &impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    variable(name).filter(|value| !value.is_empty())
}

/// The key in the section `profile` of a file of credentials.
fn of_file(text: &str, profile: &str) -> Option<Credentials> {
    let (mut key, mut secret, mut token) = (None, None, None);
    let mut is_meant = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            is_meant = name.0.trim() == profile;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_meant) {
            let place = match name.trim() {
                "aws_access_key_id" => &mut key,
                "aws_secret_access_key" => &mut secret,
                "aws_session_token" => &mut token,
                _ => continue,
            };
            *place = Some(value.trim().to_string()).filter(|value| !value.is_empty());
        }
    }
    Some(match token {
        Some(token) => Credentials::new_with_token(key?, secret?, token),
        None => Credentials::new(key?, secret?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn of(pairs: &[(&str, &str)]) -> StoreAccess {
        let all: BTreeMap<&str, &str> = pairs.iter().copied().collect();
        StoreAccess::of(|name| all.get(name).map(|value| value.to_string()))
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("credentials");
        let text = "[other]\naws_access_key_id=no\n\n# aws_access_key_id = no\n[default]\n\
                    aws_access_key_id = AKFILE\naws_secret_access_key = a=b/c\n\
                    [work]\naws_access_key_id=AKWORK\naws_secret_access_key=s\naws_session_token=t\n";
        fs::write(&path, text).unwrap();
        let file = ("AWS_SHARED_CREDENTIALS_FILE", path.to_str().unwrap());
        let own = [("AWS_ACCESS_KEY_ID", "AK"), ("AWS_SECRET_ACCESS_KEY", "s"), file];
        let found = |access: StoreAccess| {
            let key = access.credentials()?;
            Ok((key.key().to_string(), key.secret().to_string(), key.token().map(str::to_string)))
        };
        let one = |key: &str, secret: &str, token: Option<&str>| {
            Ok::<_, String>((key.to_string(), secret.to_string(), token.map(str::to_string)))
        };
        assert_eq!(found(of(&own)), one("AK", "s", None));
        assert_eq!(found(of(&[file])), one("AKFILE", "a=b/c", None));
        assert_eq!(found(of(&[file, ("AWS_PROFILE", "work")])), one("AKWORK", "s", Some("t")));
        for missing in [vec![file, ("AWS_PROFILE", "other")], vec![], vec![("HOME", "/none")]] {
            let told = found(of(&missing)).unwrap_err();
            assert!(told.contains("AWS_ACCESS_KEY_ID"), "{told}");
        }
        // What was written anew is what holds.
        let access = of(&[file]);
        fs::write(&path, text.replace("AKFILE", "AKNEW")).unwrap();
        assert_eq!(found(access.clone()), one("AKNEW", "a=b/c", None));
        assert!(!format!("{access:?} {:?}", of(&own)).contains("a=b/c"));
    }

    proptest! {
        /// Whatever stands in the file, and wherever the section is in it.
        #[test]
        fn a_section_is_found_among_others(before in "[^\\[]{0,60}", after in ".{0,60}") {
            let text = format!("{before}\n[p]\naws_access_key_id=k\naws_secret_access_key=s\n[q]\n{after}");
            let key = of_file(&text, "p");
            // Unless what comes later is the same section again.
            if !after.contains("[p]") {
                let key = key.unwrap();
                prop_assert_eq!((key.key(), key.secret(), key.token()), ("k", "s", None));
            }
            let _ = of_file(&after, "p");
        }
    }
}
