//! Which server a URL names, and how it is spoken to.
//!
//! What a URL asks for is done or refused: a parameter that a driver would pass over, a misspelt
//! `sslmode` for one, is an error. No error quotes the URL, for there may be a password in it.

use std::str::FromStr;

use sea_orm::sqlx::ConnectOptions;
use sea_orm::sqlx::mysql::MySqlConnectOptions;
use sea_orm::sqlx::postgres::PgConnectOptions;

use super::error::StoreError;

/// A server and a database on it.
pub(super) struct Address<O> {
    /// As people may see it: no user, no password.
    pub name: String,
    /// What a connection is made with.
    pub connect: O,
}

/// Which database a URL names.
pub(super) enum Place<'u> {
    /// One that is gone with the process.
    Memory,
    /// A file's, with SQLite.
    File(&'u str),
    Postgres(Box<Address<PgConnectOptions>>),
    MySql(Box<Address<MySqlConnectOptions>>),
}

/// What the drivers understand, for both and for each.
const PARAMETERS: [&str; 7] = [
    "sslmode",
    "ssl-mode",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
];
const POSTGRES: [&str; 10] = [
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "options",
];
const MYSQL: [&str; 3] = ["sslca", "ssl-ca", "socket"];

/// Reads a URL, and touches nothing.
pub(super) fn place(url: &str) -> Result<Place<'_>, StoreError> {
    let none = StoreError::BadUrl("that is no database's URL");
    let (scheme, rest) = url.split_once(':').ok_or(none.clone())?;
    match scheme {
        "sqlite" => sqlite(rest),
        // Without the slashes a parser takes anything for a database's name, a password too.
        "postgres" | "postgresql" if rest.starts_with("//") => {
            Ok(Place::Postgres(Box::new(postgres(url)?)))
        }
        "mysql" | "mariadb" if rest.starts_with("//") => Ok(Place::MySql(Box::new(mysql(url)?))),
        _ => Err(none),
    }
}

fn sqlite(rest: &str) -> Result<Place<'_>, StoreError> {
    match rest.strip_prefix("//").unwrap_or(rest) {
        "" => Err(StoreError::BadUrl("the database URL names no file")),
        ":memory:" => Ok(Place::Memory),
        path if path.contains('?') => Err(StoreError::BadUrl(
            "a sqlite: URL is followed by a path, and takes no parameters",
        )),
        path => Ok(Place::File(path)),
    }
}

fn postgres(url: &str) -> Result<Address<PgConnectOptions>, StoreError> {
    check_parameters(url, &POSTGRES)?;
    let connect = PgConnectOptions::from_str(url)
        .map_err(|_| StoreError::BadUrl("that is no PostgreSQL URL"))?
        .application_name("sandbox")
        .disable_statement_logging();
    let place = match connect.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", connect.get_host(), connect.get_port()),
    };
    let database = connect.get_database().unwrap_or_default();
    Ok(Address {
        name: format!("postgres://{place}/{database}"),
        connect,
    })
}

fn mysql(url: &str) -> Result<Address<MySqlConnectOptions>, StoreError> {
    check_parameters(url, &MYSQL)?;
    let connect = MySqlConnectOptions::from_str(url)
        .map_err(|_| StoreError::BadUrl("that is no MySQL URL"))?
        .disable_statement_logging();
    let place = match connect.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", connect.get_host(), connect.get_port()),
    };
    let database = connect.get_database().unwrap_or_default();
    Ok(Address {
        name: format!("mysql://{place}/{database}"),
        connect,
    })
}

fn check_parameters(url: &str, more: &[&str]) -> Result<(), StoreError> {
    let Some((_, parameters)) = url.split_once('?') else {
        return Ok(());
    };
    let parameters = parameters.split('#').next().unwrap_or_default();
    for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
        // What follows a bracket is PostgreSQL's to judge: `options[search_path]=sandbox`.
        let name = parameter.split(['=', '[']).next().unwrap_or_default();
        if !PARAMETERS.contains(&name) && !more.contains(&name) {
            let problem = "the database URL has a parameter that is not known";
            return Err(StoreError::BadUrl(problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sea_orm::sqlx::mysql::MySqlSslMode;
    use sea_orm::sqlx::postgres::PgSslMode;

    use super::*;

    #[test]
    fn a_url_says_how_the_way_to_mysql_is_encrypted() {
        let mode = |parameters: &str| {
            let url = format!("mysql://ada:pw@db.example/sandbox{parameters}");
            mysql(&url).unwrap().connect.get_ssl_mode()
        };
        assert!(matches!(mode(""), MySqlSslMode::Preferred));
        for name in ["ssl-mode", "sslmode"] {
            let mode = |value: &str| mode(&format!("?{name}={value}"));
            assert!(matches!(mode("DISABLED"), MySqlSslMode::Disabled));
            assert!(matches!(mode("REQUIRED"), MySqlSslMode::Required));
            assert!(matches!(mode("VERIFY_CA"), MySqlSslMode::VerifyCa));
            assert!(matches!(
                mode("VERIFY_IDENTITY"),
                MySqlSslMode::VerifyIdentity
            ));
        }
        let url = "mysql://ada@db.example/sandbox?ssl-mode=VERIFY_CA&ssl-ca=/etc/ca.pem";
        let kept = mysql(url).unwrap().connect.to_url_lossy().to_string();
        assert!(kept.contains("ca.pem"), "{kept}");
    }

    #[test]
    fn a_url_says_how_the_way_to_postgres_is_encrypted() {
        let mode = |parameters: &str| {
            let url = format!("postgres://ada:pw@db.example/sandbox{parameters}");
            postgres(&url).unwrap().connect.get_ssl_mode()
        };
        for name in ["ssl-mode", "sslmode"] {
            let mode = |value: &str| mode(&format!("?{name}={value}"));
            assert!(matches!(mode("disable"), PgSslMode::Disable));
            assert!(matches!(mode("require"), PgSslMode::Require));
            assert!(matches!(mode("verify-ca"), PgSslMode::VerifyCa));
            assert!(matches!(mode("verify-full"), PgSslMode::VerifyFull));
        }
    }

    #[test]
    fn what_a_url_asks_for_is_not_passed_over() {
        for parameters in ["sslmod=REQUIRED", "ssl=true", "ssl-mode=on", "tls", "a&b"] {
            for scheme in ["mysql", "postgres"] {
                let url = format!("{scheme}://ada:pw@db.example/sandbox?{parameters}");
                let error = match scheme {
                    "mysql" => mysql(&url).err(),
                    _ => postgres(&url).err(),
                };
                let told = error.unwrap().to_string();
                assert!(!told.contains("pw") && !told.contains("ada"), "{told}");
            }
        }
    }

    #[test]
    fn a_name_has_no_user_and_no_password() {
        let named = mysql("mysql://ada:pw@db.example:3307/sandbox?ssl-mode=REQUIRED").unwrap();
        assert_eq!(named.name, "mysql://db.example:3307/sandbox");
        let named = postgres("postgres://ada:pw@db.example/sandbox?sslmode=require").unwrap();
        assert_eq!(named.name, "postgres://db.example:5432/sandbox");
    }
}
