use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn access(pairs: &[(&str, &str)]) -> StoreAccess {
    let all: BTreeMap<&str, &str> = pairs.iter().copied().collect();
    StoreAccess::of(|name| all.get(name).map(|value| value.to_string()))
}

#[test]
fn an_address_is_a_bucket_and_a_folder_in_it() {
    for (text, shown) in [
        ("s3://abc", "s3://abc/"),
        ("s3://abc/", "s3://abc/"),
        ("s3://a.b-c_1/fleet/host=n 1", "s3://a.b-c_1/fleet/host=n 1/"),
        ("s3://abc/fleet/host=n/", "s3://abc/fleet/host=n/"),
    ] {
        assert_eq!(text.parse::<StoreAddress>().unwrap().to_string(), shown);
    }
    for wrong in [
        "",
        "abc",
        "s3:/abc",
        "http://abc/",
        "s3://",
        "s3:///a",
        "s3://ab/",
        "s3://-ab/",
        "s3://a b/",
        "s3://a@b/",
        "s3://abc//",
        "s3://abc//x",
        "s3://abc/../x",
        "s3://abc/x/./",
        "s3://abc/x\n/",
    ] {
        let told = wrong.parse::<StoreAddress>().unwrap_err().to_string();
        assert!(told.contains("write for example"), "{told}");
    }
}

#[test]
fn a_bucket_is_where_its_store_has_it() {
    let address: StoreAddress = "s3://mine/fleet/host=a/".parse().unwrap();
    let dotted: StoreAddress = "s3://my.own/".parse().unwrap();
    let base = |address: &StoreAddress, pairs: &[(&str, &str)]| {
        bucket(address, &access(pairs)).map(|bucket| bucket.base_url().to_string())
    };
    for (address, pairs, url) in [
        (&address, vec![("AWS_REGION", "eu-west-1")], "https://mine.s3.eu-west-1.amazonaws.com/"),
        (&dotted, vec![("AWS_REGION", "eu-west-1")], "https://s3.eu-west-1.amazonaws.com/my.own/"),
        (
            &address,
            vec![("AWS_DEFAULT_REGION", "cn-north-1")],
            "https://mine.s3.cn-north-1.amazonaws.com.cn/",
        ),
        (&address, vec![("AWS_ENDPOINT_URL", "http://[::1]:9000")], "http://[::1]:9000/mine/"),
        (&address, vec![("AWS_ENDPOINT_URL", "https://s/v1")], "https://s/v1/mine/"),
        (
            &address,
            vec![("AWS_ENDPOINT_URL", "https://mine.oss-cn-beijing.aliyuncs.com")],
            "https://mine.oss-cn-beijing.aliyuncs.com/",
        ),
    ] {
        assert_eq!(base(address, &pairs).as_deref(), Ok(url));
    }
    for wrong in ["127.0.0.1:9000", "ftp://host", "http://a:b@host", "http://host/?a=b"] {
        let told = base(&address, &[("AWS_ENDPOINT_URL", wrong)]).unwrap_err();
        assert!(told.contains("is none"), "{told}");
    }
    assert!(base(&address, &[]).unwrap_err().contains("AWS_REGION"));
}

/// AWS's own library signs the same request so: `botocore.auth.S3SigV4QueryAuth` 1.44.8, with the
/// key of AWS's documentation. It has the fields in another order, which counts for nothing.
#[test]
fn a_request_is_signed_as_botocore_signs_it() {
    let address: StoreAddress = "s3://mine/fleet/host=a b/".parse().unwrap();
    let bucket = bucket(&address, &access(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")]));
    let bucket = bucket.unwrap();
    let key = Credentials::new_with_token(
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "a/token+of=two",
    );
    let name = format!("{}sockets-2026-11-30T03-00-00.000Z.jsonl.gz", address.prefix);
    let at = "2013-05-24T00:00:00Z".parse().unwrap();
    let signed = bucket.put_object(Some(&key), &name).sign_with_time(SIGNED_FOR, &at);
    let by_botocore = "http://127.0.0.1:9000/mine/fleet/host%3Da%20b/\
        sockets-2026-11-30T03-00-00.000Z.jsonl.gz?X-Amz-Algorithm=AWS4-HMAC-SHA256\
        &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
        &X-Amz-Date=20130524T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host\
        &X-Amz-Security-Token=a%2Ftoken%2Bof%3Dtwo\
        &X-Amz-Signature=49b01a9856fd61ad43d74701508d620352631802cbce1980c550f20692a6c010";
    let parts = |url: &str| url.split(['?', '&']).map(str::to_string).collect::<BTreeSet<_>>();
    assert_eq!(parts(signed.as_str()), parts(by_botocore));
}

#[test]
fn what_the_store_says_is_told_with_what_to_do() {
    let refused = |status: u16, body: &[u8], region: Option<&str>| {
        let status = StatusCode::from_u16(status).unwrap();
        let (code, region) = (code(body), region.map(str::to_string));
        StoreError::Refused { store: "s".into(), status, code, region }.to_string()
    };
    let denied =
        b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>no</Message></Error>";
    let told = refused(403, denied, None);
    assert!(told.contains("(AccessDenied)") && told.contains("s3:PutObject"), "{told}");
    let told = refused(301, b"", Some("eu-west-1"));
    assert!(told.contains("AWS_REGION=eu-west-1"), "{told}");
    assert!(!refused(503, b"<Code>\x1b[2J</Code>", None).contains('\x1b'));
}

proptest! {
    /// Whoever answers there answers whatever he likes.
    #[test]
    fn a_word_of_the_store_is_letters(body: Vec<u8>, inner in ".{0,80}") {
        for body in [body, format!("<Code>{inner}</Code>").into_bytes()] {
            let code = code(&body);
            prop_assert!(code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn an_address_that_is_shown_is_the_same_again(text in "s3://[a-z.-]{0,6}/[a-z/. =]{0,20}") {
        if let Ok(address) = text.parse::<StoreAddress>() {
            prop_assert_eq!(address.to_string().parse::<StoreAddress>(), Ok(address));
        }
    }
}
