//! The user that a server runs as.

use rigel_model::{Dbms, Error, failed};

/// The user that a server runs as if Rigel is root; servers refuse to run as root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The user that the server runs as; `None` if Rigel is not root, so that the server runs as the
/// same user.
pub(super) fn account(dbms: Dbms) -> Result<Option<Account>, Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = if dbms == Dbms::Postgres {
        "postgres"
    } else {
        "mysql"
    };
    let account = account_in(&users, own).or_else(|| account_in(&users, "nobody"));
    account.map(Some).ok_or_else(|| {
        failed!(
            "a database server refuses to run as root, and neither user {own} nor user nobody \
             exists",
            "run rigel as another user, who may write to the directory"
        )
    })
}

fn account_in(users: &str, name: &str) -> Option<Account> {
    let fields: Vec<&str> = users
        .lines()
        .map(|line| line.split(':').collect())
        .find(|line: &Vec<_>| line[0] == name)?;
    let number = |at: usize| fields.get(at)?.parse().ok();
    let account = Account {
        name: name.to_string(),
        uid: number(2)?,
        gid: number(3)?,
    };
    // A user of this name with UID 0 does not help.
    (account.uid != 0).then_some(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_root_is_none() {
        let users = "root:x:0:0:root:/r:/bin/sh\npostgres:x:101:104:,,,:/p:/bin/sh\nnobody:x:0:\
                     0::/:/bin/false\n";
        assert_eq!(
            account_in(users, "postgres").map(|found| (found.uid, found.gid)),
            Some((101, 104))
        );
        assert_eq!(account_in(users, "nobody"), None);
        assert_eq!(account_in(users, "post"), None);
    }
}
