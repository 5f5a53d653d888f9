//! Where the database is, in libpq's words: a URL or keywords, the PG* variables for what they leave out, and the password
//! file. (`libpq-connect.html`, `libpq-envars.html` and `libpq-pgpass.html` of the PostgreSQL documentation.)
//!
//! tokio-postgres reads most of it; this file reads what that crate leaves to its users: sslmode and sslrootcert, which
//! choose the TLS connector, and the password file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;
use zeroize::Zeroizing;

use crate::secret::private_file;
use crate::tls::{Check, Roots, connector};

/// Where the sockets of Debian's and most others' servers are, libpq's default host.
const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// Everything needed to connect.
#[derive(Clone)]
pub struct DatabaseUrl {
    /// For tokio-postgres.
    pub postgres: tokio_postgres::Config,
    /// For TLS, as sslmode says.
    pub tls: MakeRustlsConnect,
    check: Option<Check>,
}

/// What the environment offers to one who asks for a variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl DatabaseUrl {
    /// Reads the URL or keywords; `password` wins over any that they or the environment hold.
    pub fn read(
        text: &str,
        password: Option<Zeroizing<String>>,
        connect_timeout: Duration,
        environment: Environment<'_>,
    ) -> Result<Self, String> {
        let (rest, ours) = split(text)?;
        let mut postgres: tokio_postgres::Config = rest
            .parse()
            .map_err(|error: tokio_postgres::Error| causes(&error))?;
        fill_in(&mut postgres, environment)?;
        if postgres.get_connect_timeout().is_none() {
            postgres.connect_timeout(connect_timeout);
        }
        let from = |key: &str, variable: &str| {
            ours.get(key)
                .or_else(|| environment(variable))
                .filter(|text| !text.is_empty())
        };
        let check = ssl(
            &mut postgres,
            from("sslmode", "PGSSLMODE"),
            from("sslrootcert", "PGSSLROOTCERT"),
        )?;
        let tls = connector(check.as_ref().unwrap_or(&Check::Nothing))?;
        if let Some(password) = password {
            postgres.password(password.as_bytes());
        } else if postgres.get_password().is_none() {
            let file = from("passfile", "PGPASSFILE").map(PathBuf::from);
            let usual = || {
                environment("HOME")
                    .map(|home| Path::new(&home).join(".pgpass"))
                    .filter(|path| path.exists())
            };
            if let Some(path) = file.or_else(usual)
                && let Some(password) = password_in(&path, &postgres)?
            {
                postgres.password(password.as_bytes());
            }
        }
        Ok(Self {
            postgres,
            tls,
            check,
        })
    }

    /// Whether the text itself holds a password, which does not belong on a command line.
    #[must_use]
    pub fn text_holds_password(text: &str) -> bool {
        split(text)
            .ok()
            .and_then(|(rest, _)| rest.parse::<tokio_postgres::Config>().ok())
            .is_some_and(|config| config.get_password().is_some())
    }
}

impl fmt::Display for DatabaseUrl {
    /// For logs: who, where, how; no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.postgres.get_hosts().iter().map(host_name).collect();
        let ports: Vec<_> = self
            .postgres
            .get_ports()
            .iter()
            .map(u16::to_string)
            .collect();
        write!(
            f,
            "{} as {} at {} port {}, {}",
            self.postgres.get_dbname().unwrap_or("(the user's name)"),
            self.postgres.get_user().unwrap_or("(the system's user)"),
            hosts.join(","),
            if ports.is_empty() {
                "5432".to_owned()
            } else {
                ports.join(",")
            },
            match (&self.check, self.postgres.get_ssl_mode()) {
                (None, _) | (_, SslMode::Disable) => "without TLS",
                (Some(Check::Nothing), SslMode::Prefer) =>
                    "TLS if the server has it, certificate unchecked",
                (Some(Check::Nothing), _) => "TLS, certificate unchecked",
                (Some(Check::Authority(_)), _) => "TLS, certificate checked without the name",
                (Some(Check::AuthorityAndName(_)), _) => "TLS, certificate and name checked",
            }
        )
    }
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

/// The parameters that are read here.
const OURS: [&str; 3] = ["sslmode", "sslrootcert", "passfile"];

/// What stood in the text for those.
#[derive(Debug, Default)]
struct Ours(Vec<(String, String)>);

impl Ours {
    fn get(&self, key: &str) -> Option<String> {
        self.0
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.clone())
    }
}

/// The text without our parameters, and those.
fn split(text: &str) -> Result<(String, Ours), String> {
    let text = text.trim();
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        split_url(text)
    } else if text.contains("://") {
        Err("write a URL as postgresql://host:5432/name, or keywords as host=… dbname=…".to_owned())
    } else {
        split_keywords(text)
    }
}

fn split_url(text: &str) -> Result<(String, Ours), String> {
    let Some((before, query)) = text.split_once('?') else {
        return Ok((text.to_owned(), Ours::default()));
    };
    let mut ours = Ours::default();
    let mut rest = vec![];
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair
            .split_once('=')
            .ok_or("a parameter after ? has no value")?;
        if !is_keyword(key) {
            return Err("a parameter after ? is no key=value pair".to_owned());
        }
        if OURS.contains(&key) {
            let value = percent_decode_str(value)
                .decode_utf8()
                .map_err(|_| format!("{key} is not UTF-8"))?;
            ours.0.push((key.to_owned(), value.into_owned()));
        } else {
            rest.push(pair);
        }
    }
    let rest = if rest.is_empty() {
        before.to_owned()
    } else {
        format!("{before}?{}", rest.join("&"))
    };
    Ok((rest, ours))
}

/// Keywords: `key = value`, white space around the sign allowed; a value with spaces stands in single quotes; in either, a
/// backslash takes the next character as it is.
fn split_keywords(text: &str) -> Result<(String, Ours), String> {
    let mut ours = Ours::default();
    let mut rest = String::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok((rest, ours));
        }
        let mut key = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_whitespace() && *c != '=') {
            key.push(c);
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        // The word may be a password that lost its key, or a URL with a slash too few, whose first = comes after the password:
        // it is not repeated.
        if chars.next() != Some('=') || !is_keyword(&key) {
            return Err("a word that is no key=value pair".to_owned());
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let quoted = chars.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        loop {
            match chars.next() {
                Some('\\') => value.extend(chars.next()),
                Some('\'') if quoted => break,
                Some(c) if quoted || !c.is_whitespace() => value.push(c),
                None if quoted => {
                    return Err(format!("the value of {key} lacks its closing quote"));
                }
                Some(_) | None => break,
            }
        }
        if OURS.contains(&key.as_str()) {
            ours.0.push((key, value));
        } else {
            let escaped = value.replace('\\', "\\\\").replace('\'', "\\'");
            rest.push_str(&format!("{key}='{escaped}' "));
        }
    }
}

/// What every keyword of libpq looks like. Whatever else stands before a = is something that went astray, and may be a secret.
fn is_keyword(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

fn fill_in(
    postgres: &mut tokio_postgres::Config,
    environment: Environment<'_>,
) -> Result<(), String> {
    if postgres.get_hosts().is_empty() && postgres.get_hostaddrs().is_empty() {
        let hosts = environment("PGHOST").filter(|text| !text.is_empty());
        for host in hosts.as_deref().unwrap_or(SOCKET_DIRECTORY).split(',') {
            postgres.host(host);
        }
    }
    if postgres.get_ports().is_empty()
        && let Some(ports) = environment("PGPORT")
    {
        for port in ports.split(',') {
            postgres.port(
                port.trim()
                    .parse()
                    .map_err(|_| format!("PGPORT: \"{port}\" is not a port"))?,
            );
        }
    }
    if postgres.get_user().is_none()
        && let Some(user) = environment("PGUSER")
    {
        postgres.user(user);
    }
    if postgres.get_dbname().is_none()
        && let Some(name) = environment("PGDATABASE")
    {
        postgres.dbname(name);
    }
    if postgres.get_password().is_none()
        && let Some(password) = environment("PGPASSWORD")
    {
        postgres.password(password);
    }
    Ok(())
}

/// Sets sslmode and says how the certificate is checked; `None` for no TLS at all.
fn ssl(
    postgres: &mut tokio_postgres::Config,
    mode: Option<String>,
    root: Option<String>,
) -> Result<Option<Check>, String> {
    let roots = |root: Option<String>| match root.as_deref() {
        None | Some("system") => Roots::System,
        Some(path) => Roots::File(path.into()),
    };
    let (mode, check) = match mode.as_deref() {
        Some("disable") => (SslMode::Disable, None),
        None | Some("prefer") => (SslMode::Prefer, Some(Check::Nothing)),
        // As libpq: a root given with `require` is used, as if verify-ca had been asked for.
        Some("require") if root.is_some() => {
            (SslMode::Require, Some(Check::Authority(roots(root))))
        }
        Some("require") => (SslMode::Require, Some(Check::Nothing)),
        Some("verify-ca") if root.as_deref().is_none_or(|root| root == "system") => {
            return Err("sslmode=verify-ca with the system's authorities would let in anybody with a certificate: use verify-full, or name your authority with sslrootcert=FILE".to_owned());
        }
        Some("verify-ca") => (SslMode::Require, Some(Check::Authority(roots(root)))),
        Some("verify-full") => (SslMode::Require, Some(Check::AuthorityAndName(roots(root)))),
        // Not repeated: of a text that was pasted twice, the second half lies here, password included.
        Some(_) => {
            return Err(
                "sslmode is none: write disable, prefer, require, verify-ca or verify-full"
                    .to_owned(),
            );
        }
    };
    postgres.ssl_mode(mode);
    Ok(check)
}

/// The password that the file has for this connection: the first line whose host, port, database and user fit.
fn password_in(
    path: &Path,
    postgres: &tokio_postgres::Config,
) -> Result<Option<Zeroizing<String>>, String> {
    let text = private_file(path).map_err(|error| error.to_string())?;
    let host = match postgres.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        // libpq looks for a socket in the default directory under this name.
        Some(Host::Unix(path)) if path == Path::new(SOCKET_DIRECTORY) => "localhost".to_owned(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = postgres
        .get_ports()
        .first()
        .copied()
        .unwrap_or(5432)
        .to_string();
    let user = postgres.get_user().unwrap_or_default();
    let name = postgres.get_dbname().unwrap_or(user);
    let found = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = pgpass_fields(line);
            let [of_host, of_port, of_name, of_user, password] = fields.as_slice() else {
                return None;
            };
            let fits = [
                (of_host, host.as_str()),
                (of_port, &port),
                (of_name, name),
                (of_user, user),
            ]
            .iter()
            .all(|(pattern, wanted)| pattern.as_str() == "*" || pattern.as_str() == *wanted);
            fits.then(|| password.clone())
        });
    Ok(found)
}

/// The five fields of a line: colons part them, a backslash takes the next character as it is.
fn pgpass_fields(line: &str) -> Vec<Zeroizing<String>> {
    let mut fields = vec![Zeroizing::new(String::new())];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let last = fields.len() - 1;
        match c {
            '\\' => fields[last].extend(chars.next()),
            ':' if fields.len() < 5 => fields.push(Zeroizing::new(String::new())),
            c => fields[last].push(c),
        }
    }
    fields
}

fn causes(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<DatabaseUrl, String> {
        let environment = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        DatabaseUrl::read(text, None, Duration::from_secs(5), &environment)
    }

    fn good(text: &str, variables: &[(&str, &str)]) -> DatabaseUrl {
        read(text, variables).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_went_astray_is_never_repeated() {
        for text in [
            "postgresql:/ann:s3cret@db/pay?sslmode=require",
            "ostgres//ann:s3cret@db/pay='x",
            "postgresql://db/pay?ann:s3cret@x=1",
            "postgresql://db/pay?sslmode=requirepostgresql://ann:s3cret@db/pay",
        ] {
            let complaint = read(text, &[]).err().unwrap_or_else(|| panic!("{text}"));
            assert!(!complaint.contains("s3cret"), "{complaint}");
        }
    }

    #[test]
    fn a_url_and_keywords_say_the_same() {
        let url = good(
            "postgresql://ann:s%20t@db.example:6543/pay?sslmode=require&target_session_attrs=read-write",
            &[],
        );
        let words = good(
            r"host = db.example port=6543 user=ann password='s t' dbname=pay sslmode=require target_session_attrs='read-write'",
            &[],
        );
        assert_eq!(url.postgres, words.postgres);
        assert_eq!(
            url.to_string(),
            "pay as ann at db.example port 6543, TLS, certificate unchecked"
        );
    }

    #[test]
    fn what_is_left_out_comes_from_the_environment_and_then_from_libpqs_defaults() {
        let variables = [
            ("PGHOST", "/tmp/s"),
            ("PGPORT", "7777"),
            ("PGUSER", "u"),
            ("PGDATABASE", "d"),
            ("PGPASSWORD", "p"),
        ];
        let config = good("", &variables);
        assert_eq!(config.postgres.get_hosts(), &[Host::Unix("/tmp/s".into())]);
        assert_eq!(config.postgres.get_ports(), &[7777]);
        assert_eq!(
            (config.postgres.get_user(), config.postgres.get_dbname()),
            (Some("u"), Some("d"))
        );
        assert_eq!(config.postgres.get_password(), Some(b"p".as_slice()));
        assert_eq!(
            good("", &[]).postgres.get_hosts(),
            &[Host::Unix(SOCKET_DIRECTORY.into())]
        );
        assert_eq!(
            good("host=h", &variables).postgres.get_hosts(),
            &[Host::Tcp("h".to_owned())]
        );
    }

    #[test]
    fn quotes_and_backslashes_in_keywords_are_read_as_libpq_reads_them() {
        let config = good(r"user='a\'b\\c d' password=x\ y dbname=''", &[]);
        assert_eq!(config.postgres.get_user(), Some(r"a'b\c d"));
        assert_eq!(config.postgres.get_password(), Some(b"x y".as_slice()));
        for bad in [
            "user",
            "user='x",
            "5ec2e7 host=h",
            "mysql://h/d",
            "host=h nonsense=1",
        ] {
            let error = read(bad, &[])
                .err()
                .unwrap_or_else(|| panic!("{bad} was accepted"));
            assert!(!error.contains("5ec2e7"), "{error}");
        }
    }

    #[test]
    fn sslmode_decides_how_much_is_checked() {
        let check = |text: &str| good(text, &[]).check;
        assert_eq!(check("host=h sslmode=disable"), None);
        assert_eq!(check("host=h"), Some(Check::Nothing));
        assert_eq!(
            check("host=h sslmode=verify-full"),
            Some(Check::AuthorityAndName(Roots::System))
        );
        assert_eq!(
            check("postgresql://h/d?sslmode=verify-full&sslrootcert=system"),
            Some(Check::AuthorityAndName(Roots::System))
        );
        assert!(
            read("host=h sslmode=verify-ca", &[]).is_err(),
            "any public authority's customer would pass"
        );
        assert!(read("host=h sslmode=on", &[]).is_err());
        assert!(read("host=h sslmode=verify-full sslrootcert=/nonexistent", &[]).is_err());
        let from_environment = good("host=h", &[("PGSSLMODE", "verify-full")]);
        assert_eq!(
            from_environment.check,
            Some(Check::AuthorityAndName(Roots::System))
        );
        assert_eq!(from_environment.postgres.get_ssl_mode(), SslMode::Require);
    }

    #[test]
    fn a_password_on_the_command_line_is_noticed() {
        for with in ["postgres://u:p@h/d", "host=h password=p"] {
            assert!(DatabaseUrl::text_holds_password(with), "{with}");
        }
        for without in ["postgres://u@h/d", "host=h", ""] {
            assert!(!DatabaseUrl::text_holds_password(without), "{without}");
        }
    }

    #[test]
    fn the_password_file_gives_the_first_line_that_fits() {
        let path = std::env::temp_dir().join(format!("sluice-pgpass-{}", std::process::id()));
        let lines = "# comment\nother:5432:*:*:no\nh:5432:d:u:pa\\:ss\\\\:w\n*:*:*:*:last\n";
        std::fs::write(&path, lines).expect("a temporary file can be written");
        let set_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
                .expect("its mode can be set")
        };
        set_mode(0o600);
        let passfile = path.display().to_string();
        let password = |text: &str| {
            let config = good(text, &[("PGPASSFILE", &passfile)]);
            config
                .postgres
                .get_password()
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        assert_eq!(
            password("host=h user=u dbname=d").as_deref(),
            Some(r"pa:ss\:w")
        );
        assert_eq!(password("host=h user=v dbname=d").as_deref(), Some("last"));
        assert_eq!(
            password("host=h user=v dbname=d password=mine").as_deref(),
            Some("mine")
        );
        set_mode(0o644);
        assert!(
            read("host=h", &[("PGPASSFILE", &passfile)])
                .is_err_and(|error| error.contains("chmod 600"))
        );
        std::fs::remove_file(&path).expect("it can be removed");
    }
}
