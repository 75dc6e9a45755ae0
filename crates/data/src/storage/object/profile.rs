//! Profiles of the AWS tools, in `~/.aws/credentials` and `~/.aws/config`. Programs that they name are not run.

use super::failure::Failure;
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// Name of the access key, here and as an option of `object_store`.
pub(super) const KEY_ID: &str = "aws_access_key_id";
const SECRET: &str = "aws_secret_access_key";
const TOKEN: &str = "aws_session_token";

/// Advice for a profile that cannot be used.
pub(super) const HINT: &str = "export the keys, `eval \"$(aws configure export-credentials --format env)\"`, or check AWS_PROFILE, \
                               AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE";

/// Settings by which a profile gets its keys from elsewhere.
const OTHER_SOURCES: [&str; 7] = [
    "credential_process",
    "sso_session",
    "sso_start_url",
    "role_arn",
    "credential_source",
    "web_identity_token_file",
    "login_session",
];

/// Files of profiles, the one that takes precedence first.
const FILES: [ProfileFile; 2] = [
    ProfileFile {
        variable: "AWS_SHARED_CREDENTIALS_FILE",
        usual: "~/.aws/credentials",
        prefix: "",
    },
    ProfileFile { variable: "AWS_CONFIG_FILE", usual: "~/.aws/config", prefix: "profile " },
];

struct ProfileFile {
    /// Variable with the path.
    variable: &'static str,
    /// The path without this variable.
    usual: &'static str,
    /// Word before the names of profiles other than `default`.
    prefix: &'static str,
}

/// The settings of a profile. Has no `Debug`, because some are secret.
#[derive(Default)]
pub(super) struct Profile {
    name: String,
    settings: BTreeMap<String, ProfileSetting>,
}

/// A setting with the file that contains it.
struct ProfileSetting {
    value: String,
    file: String,
}

impl Profile {
    /// Reads the profile that `AWS_PROFILE` names, by default `default`. `variable` reads the environment.
    pub(super) fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let named = set("AWS_PROFILE").or_else(|| set("AWS_DEFAULT_PROFILE"));
        let name = named.clone().unwrap_or_else(|| "default".into());
        let mut settings = BTreeMap::new();
        let mut files = Vec::new();
        for ProfileFile { variable, usual, prefix } in FILES {
            let given = set(variable);
            let is_usual = given.is_none();
            let file = given.unwrap_or_else(|| usual.into());
            let path = match file.strip_prefix("~/") {
                Some(rest) => format!("{}/{rest}", set("HOME").unwrap_or_default()),
                None => file.clone(),
            };
            let text = match std::fs::read_to_string(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
                // A container may have the home of another user.
                Err(error) if is_usual && error.kind() == ErrorKind::PermissionDenied => {
                    String::new()
                }
                read => read.map_err(|error| {
                    Failure::new(error.kind(), format!("cannot read `{file}`: {error}"))
                })?,
            };
            for (key, value) in section(&text, &[name.clone(), format!("{prefix}{name}")]) {
                let setting = || ProfileSetting { value, file: file.clone() };
                settings.entry(key).or_insert_with(setting);
            }
            files.push(format!("`{file}`"));
        }
        if settings.is_empty()
            && let Some(name) = named
        {
            let message = format!("profile `{name}` is in neither {}", files.join(" nor "));
            return Err(Failure::new(ErrorKind::InvalidInput, message));
        }
        Ok(Profile { name, settings })
    }

    /// A setting, and where it is from: `profile default in ~/.aws/config`.
    pub(super) fn get(&self, key: &str) -> Option<(&str, String)> {
        let ProfileSetting { value, file } = self.settings.get(key)?;
        Some((value, format!("profile {} in {file}", self.name)))
    }

    /// The options of `object_store` that contain the keys, and where they are from; `None` if the profile has no keys.
    pub(super) fn keys(&self) -> Result<Option<ProfileKeys>, Failure> {
        let failure = |message| Failure::new(ErrorKind::PermissionDenied, message);
        let name = &self.name;
        let Some((_, source)) = self.get(KEY_ID) else {
            let other = OTHER_SOURCES.iter().find_map(|key| Some((key, self.get(key)?.1)));
            return match other {
                Some((key, source)) => Err(failure(format!(
                    "{source} gets its keys by `{key}`, which is not followed"
                ))),
                None => Ok(None),
            };
        };
        // The keys are those of one file.
        let file = self.settings.get(KEY_ID).map(|setting| &setting.file);
        let is_together = |key: &&str| self.settings.get(*key).map(|setting| &setting.file) == file;
        if !is_together(&SECRET) {
            return Err(failure(format!("profile {name} has `{KEY_ID}` and no `{SECRET}`")));
        }
        let keys = [KEY_ID, SECRET, TOKEN].into_iter().filter(is_together);
        let options = keys.filter_map(|key| Some((key, self.get(key)?.0.to_string()))).collect();
        Ok(Some(ProfileKeys { options, source }))
    }
}

/// The keys of a profile.
pub(super) struct ProfileKeys {
    pub(super) options: Vec<(&'static str, String)>,
    pub(super) source: String,
}

/// The settings below one of `headers`. Indented lines belong to nested settings and are left out.
fn section(text: &str, headers: &[String]) -> BTreeMap<String, String> {
    let mut is_inside = false;
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with([' ', '\t', '#', ';'])) {
        if let Some((header, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let words: Vec<&str> = header.split_whitespace().collect();
            let header = words.join(" ").replace(['"', '\''], "");
            is_inside = headers.contains(&header);
        } else if is_inside && let Some((key, value)) = line.split_once('=') {
            found.insert(key.trim().to_ascii_lowercase(), value.trim().to_string());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "\
[default]
aws_access_key_id = AKIA
aws_secret_access_key = hunter2
# [work]
[work]
AWS_ACCESS_KEY_ID=WORK
aws_secret_access_key=hunter=3
aws_session_token=token
[half]
aws_access_key_id = HALF
";
    const CONFIG: &str = "\
[default]
region = eu-1
s3 =
  endpoint_url = http://nested
[profile work]
endpoint_url = http://store:9000
region = eu-2
[profile \"program\"]
credential_process = /opt/keys --json
";

    /// Reads a profile from files in a home folder.
    fn read(profile: Option<&str>) -> Result<Profile, Failure> {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        std::fs::write(home.path().join(".aws/credentials"), CREDENTIALS).unwrap();
        let config = home.path().join("other-config");
        std::fs::write(&config, CONFIG).unwrap();
        Profile::read(&|name| match name {
            "HOME" => Some(home.path().to_string_lossy().into_owned()),
            "AWS_CONFIG_FILE" => Some(config.to_string_lossy().into_owned()),
            "AWS_PROFILE" => profile.map(str::to_string),
            _ => None,
        })
    }

    #[test]
    fn keys_and_settings_are_those_of_the_profile() {
        let value = |profile: &Profile, key| profile.get(key).map(|(value, _)| value.to_string());
        let profile = read(None).unwrap();
        let keys = profile.keys().unwrap().unwrap();
        assert_eq!(keys.source, "profile default in ~/.aws/credentials");
        let options = keys.options.iter().map(|(key, value)| format!("{key}={value}"));
        let expected = ["aws_access_key_id=AKIA", "aws_secret_access_key=hunter2"];
        assert_eq!(options.collect::<Vec<_>>(), expected);
        assert_eq!(value(&profile, "region").as_deref(), Some("eu-1"));
        assert_eq!(value(&profile, "endpoint_url"), None);
        let profile = read(Some("work")).unwrap();
        let keys = profile.keys().unwrap().unwrap();
        let values: Vec<&str> = keys.options.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["WORK", "hunter=3", "token"]);
        assert_eq!(value(&profile, "endpoint_url").as_deref(), Some("http://store:9000"));
        assert_eq!(value(&profile, "region").as_deref(), Some("eu-2"));
    }

    #[test]
    fn profiles_without_usable_keys_are_explained() {
        let absent = read(Some("absent")).err().unwrap();
        assert!(
            absent.to_string().starts_with("profile `absent` is in neither `~/.aws/credentials`")
        );
        let failure = read(Some("half")).unwrap().keys().err().unwrap();
        assert!(failure.to_string().contains("no `aws_secret_access_key`"), "{failure}");
        let failure = read(Some("program")).unwrap().keys().err().unwrap();
        assert!(failure.to_string().contains("by `credential_process`"), "{failure}");
        let none = Profile::read(&|_| None).unwrap();
        assert!(none.keys().unwrap().is_none());
    }
}
