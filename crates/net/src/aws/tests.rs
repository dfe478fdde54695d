//! The sources of keys, with files and servers of this machine.

use std::{collections::BTreeMap, fs, path::PathBuf};

use ottla_core::config::sasl::aws::{AwsKeys, AwsSettings};

use super::{AwsClient, FoundKeys, expiration};
use crate::oidc::{TokenFailure, tests::Idp};

fn client(settings: AwsSettings, variables: &[(&str, &str)]) -> AwsClient {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    AwsClient { settings, environment: Box::new(move |name| variables.get(name).cloned()) }
}

fn find(variables: &[(&str, &str)]) -> Result<FoundKeys, TokenFailure> {
    client(AwsSettings::default(), variables).fetch()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ottla-aws-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join(".aws")).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn home(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn keys_of_properties_and_environment_are_used_first() {
    let environment = [
        ("AWS_ACCESS_KEY_ID", "E"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("AWS_SESSION_TOKEN", "t"),
        ("AWS_REGION", "eu-x-1"),
    ];
    let found = find(&environment).unwrap();
    assert_eq!((&*found.keys.access_key, found.expires_ms), ("E", None));
    assert_eq!(found.keys.session_token, Some("t".into()));
    assert_eq!(found.keys.region.as_deref(), Some("eu-x-1"));
    let keys = AwsKeys { access_key: "P".into(), secret_key: "s".into(), session_token: None, region: None };
    let settings = AwsSettings { keys: Some(keys), region: Some("us-y-2".into()), profile: None };
    let found = client(settings, &environment).fetch().unwrap();
    assert_eq!((&*found.keys.access_key, found.keys.region.as_deref()), ("P", Some("us-y-2")));
    assert!(!format!("{found:?}").contains("\"s\""));
}

#[test]
fn profiles_are_read_from_both_files() {
    let folder = Folder::new("profiles");
    folder.file(
        ".aws/credentials",
        "# a comment\n[default]\naws_access_key_id = D\naws_secret_access_key = d=/+\n\n[ other ]\naws_access_key_id=O\n\
         aws_secret_access_key=o\naws_session_token=t\n[half]\naws_access_key_id=H\n",
    );
    folder.file(
        ".aws/config",
        "[default]\nregion=eu-west-1\ns3 =\n  region = nested\n[profile other]\nregion = us-west-2\n[profile role]\nrole_arn=arn\n",
    );
    let home = ("HOME", folder.home());
    let keys = find(&[home]).unwrap().keys;
    assert_eq!((&*keys.access_key, keys.region.as_deref()), ("D", Some("eu-west-1")));
    assert_eq!(keys.secret_key, "d=/+".into());
    let keys = find(&[home, ("AWS_PROFILE", "other")]).unwrap().keys;
    assert_eq!((&*keys.access_key, keys.region.as_deref()), ("O", Some("us-west-2")));
    assert_eq!(keys.session_token, Some("t".into()));
    let named = |name: &str| {
        let settings = AwsSettings { profile: Some(name.to_owned()), ..AwsSettings::default() };
        client(settings, &[home]).fetch()
    };
    assert_eq!(named("other").unwrap().keys.access_key, "O");
    for (name, part) in [("half", "\"half\""), ("none", "\"none\""), ("role", "role_arn")] {
        let reason = named(name).unwrap_err().reason;
        assert!(reason.contains(part), "{reason}");
    }
}

const KEYS: &str =
    r#"{"AccessKeyId":"A","SecretAccessKey":"hunter2","Token":"t","Expiration":"2099-01-02T03:04:05Z"}"#;

fn http(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn containers_and_machines_have_temporary_keys() {
    let idp = Idp::answering(http(KEYS));
    let found = find(&[
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &idp.url),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "abc"),
    ])
    .unwrap();
    assert_eq!((&*found.keys.access_key, found.expires_ms), ("A", Some(4_071_006_245_000)));
    assert!(idp.request().to_ascii_lowercase().contains("\r\nauthorization: abc\r\n"));
    let elsewhere = find(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://evil.test/")]).unwrap_err().reason;
    assert!(elsewhere.contains("evil.test"), "{elsewhere}");

    let machine = Idp::start(|request, stream| {
        let body = match request.split(' ').nth(1).unwrap() {
            "/latest/api/token" if request.starts_with("PUT ") => "session",
            "/latest/meta-data/iam/security-credentials/" => "my-role",
            "/latest/meta-data/iam/security-credentials/my-role" => KEYS,
            _ => "",
        };
        let _ = stream.write_all(&http(body));
    });
    let base = machine.url.trim_end_matches("/token");
    let found = find(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", base)]).unwrap();
    assert_eq!(found.keys.access_key, "A");
    assert!(machine.request().contains("ttl-seconds"));
    assert!(machine.request().to_ascii_lowercase().contains("x-aws-ec2-metadata-token: session"));
    let reason = find(&[("AWS_EC2_METADATA_DISABLED", "true")]).unwrap_err().reason;
    assert!(reason.contains("found neither"), "{reason}");
}

#[test]
fn web_identity_is_exchanged_for_temporary_keys() {
    let folder = Folder::new("web-identity");
    let file = folder.file("token", "e.y.z\n");
    let xml = "<R><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>hunter2</SecretAccessKey>\
               <SessionToken>t/=</SessionToken><Expiration>2099-01-02T03:04:05Z</Expiration></Credentials></R>";
    let sts = Idp::answering(http(xml));
    let variables = |url| {
        [
            ("AWS_WEB_IDENTITY_TOKEN_FILE", &*file),
            ("AWS_ROLE_ARN", "arn:aws:iam::1:role/x"),
            ("AWS_ENDPOINT_URL_STS", url),
        ]
    };
    let found = find(&variables(&sts.url)).unwrap();
    assert_eq!((found.keys.session_token, found.expires_ms), (Some("t/=".into()), Some(4_071_006_245_000)));
    let request = sts.request();
    assert!(
        request.contains("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam"),
        "{request}"
    );
    assert!(request.ends_with("&RoleSessionName=ottla&WebIdentityToken=e.y.z"), "{request}");
    let refused =
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 38\r\n\r\n<Error><Code>AccessDenied</Code></Error";
    let sts = Idp::answering(refused.as_bytes().to_vec());
    let failure = find(&variables(&sts.url)).unwrap_err();
    assert!(failure.reason.contains("403 AccessDenied; check AWS_ROLE_ARN"), "{}", failure.reason);
}

#[test]
fn malformed_keys_are_errors_without_secrets() {
    for body in [
        "<html>",
        "{}",
        r#"{"AccessKeyId":"A"}"#,
        r#"{"AccessKeyId":1,"SecretAccessKey":"hunter2"}"#,
        r#"{"AccessKeyId":"A","SecretAccessKey":"hunter2","Expiration":"soon"}"#,
        r#"{"AccessKeyId":"A","SecretAccessKey":"hunter2","Expiration":"2001-01-01T00:00:00Z"}"#,
    ] {
        let idp = Idp::answering(http(body));
        let reason = find(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &idp.url)]).unwrap_err().reason;
        assert!(reason.starts_with("AWS keys: ") && !reason.contains("hunter2"), "{reason}");
    }
    for text in
        ["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "ä026-01-01T00:00:00Z"]
    {
        assert!(expiration("url", text).is_err(), "{text}");
    }
}
