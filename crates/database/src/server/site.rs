//! The directory in which a server's folder is made.
//!
//! Input: the directory that the user named. Output: that directory; or, where the server's user
//! cannot reach it, the next directory above it that this user can reach, on the same filesystem.
//! Nothing is mounted and no right is changed, so it also works in containers.

use super::account::Account;
use rigel_model::files::Directory;
use rigel_model::{Error, shell_path, usage};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An open directory for a server's folder.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) directory: Directory,
    pub(super) path: PathBuf,
    /// `None` if this is the directory that the user named.
    pub(super) detour: Option<Detour>,
}

/// Why a server's folder is not in the directory that Rigel's user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detour {
    /// Name of the server's user.
    pub user: String,
    /// The directory that this user cannot pass.
    pub closed: PathBuf,
    /// The directory that Rigel's user named.
    pub named: PathBuf,
    /// Its inode, by which cleanup finds the folder.
    pub(super) inode: u64,
}

impl Site {
    /// Finds it for the directory `named`.
    pub(super) fn find(named: &Path, account: Option<&Account>) -> Result<Self, Error> {
        let directory = Directory::open(named).map_err(|error| refused(named, &error))?;
        let path = std::fs::canonicalize(named).map_err(|error| refused(named, &error))?;
        let closed = account.and_then(|account| Some((account, closed_to(account, &path)?)));
        let Some((account, closed)) = closed else {
            return Ok(Self {
                directory,
                path,
                detour: None,
            });
        };
        let unreachable = || unreachable(account, closed, &path);
        // All directories above the first closed one let the user through.
        let above = closed.parent().ok_or_else(unreachable)?;
        let higher = Directory::open(above).map_err(|_| unreachable())?;
        let (lower, upper) = rustix::fs::fstat(&directory)
            .and_then(|lower| Ok((lower, rustix::fs::fstat(&higher)?)))
            .map_err(|error| refused(named, &error.into()))?;
        if lower.st_dev != upper.st_dev {
            return Err(unreachable());
        }
        Ok(Self {
            directory: higher,
            path: above.to_path_buf(),
            detour: Some(Detour {
                user: account.name.clone(),
                closed: closed.to_path_buf(),
                inode: lower.st_ino,
                named: path,
            }),
        })
    }
}

/// Checks that the user can reach `path`.
pub(super) fn check_reachable(path: &Path, account: &Account) -> Result<(), Error> {
    closed_to(account, path).map_or(Ok(()), |closed| Err(unreachable(account, closed, path)))
}

/// The first directory on the way to `path`, `path` included, that the user cannot pass.
fn closed_to<'a>(account: &Account, path: &'a Path) -> Option<&'a Path> {
    let is_closed = |folder: &&Path| {
        std::fs::metadata(folder).is_ok_and(|facts| !lets_through(&facts, account))
    };
    path.ancestors().filter(is_closed).last()
}

fn lets_through(facts: &Metadata, account: &Account) -> bool {
    let bit = if facts.uid() == account.uid {
        0o100
    } else if facts.gid() == account.gid {
        0o010
    } else {
        0o001
    };
    facts.mode() & bit != 0
}

fn unreachable(account: &Account, closed: &Path, path: &Path) -> Error {
    usage!(
        "the server would run as user {name}, who cannot pass the directory {closed} to reach \
         {path}",
        "give a directory that {name} can reach, or run `chmod o+x {word}`",
        name = account.name,
        closed = closed.display(),
        path = path.display(),
        word = shell_path(closed)
    )
}

pub(super) fn refused(directory: &Path, error: &io::Error) -> Error {
    usage!(
        "cannot make a private server in {directory}: {error}",
        "give an existing directory that you may write to, on the storage to be measured",
        directory = directory.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Directories `closed/inner` in one for temporary files.
    struct Nested(PathBuf);

    impl Nested {
        fn new(name: &str) -> Self {
            let top =
                std::env::temp_dir().join(format!("rigel-site-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&top);
            std::fs::create_dir_all(top.join("closed/inner")).unwrap();
            // Whatever the umask is.
            set_mode(&top, 0o755);
            Self(top)
        }

        fn closed(&self) -> PathBuf {
            self.0.join("closed")
        }

        fn inner(&self) -> PathBuf {
            self.0.join("closed/inner")
        }
    }

    impl Drop for Nested {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn set_mode(path: &Path, bits: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    }

    fn user(name: &str, uid: u32, gid: u32) -> Account {
        Account {
            name: name.into(),
            uid,
            gid,
        }
    }

    #[test]
    fn a_folder_that_is_closed_to_the_user_is_named() {
        let nested = Nested::new("named");
        let stranger = user("stranger", 4_000_000, 4_000_000);
        set_mode(&nested.closed(), 0o701);
        set_mode(&nested.inner(), 0o701);
        check_reachable(&nested.inner(), &stranger).unwrap();
        set_mode(&nested.inner(), 0o700);
        set_mode(&nested.closed(), 0o770);
        let error = check_reachable(&nested.inner(), &stranger).unwrap_err();
        assert!(
            error.to_string().contains("user stranger")
                && error
                    .to_string()
                    .contains(&format!("chmod o+x {}`", nested.closed().display())),
            "{error}"
        );
        let facts = std::fs::metadata(nested.closed()).unwrap();
        assert!(lets_through(&facts, &user("owner", facts.uid(), 4_000_000)));
        assert!(lets_through(
            &facts,
            &user("member", 4_000_000, facts.gid())
        ));
    }

    #[test]
    fn a_server_whose_user_cannot_reach_the_directory_goes_above_what_is_closed() {
        let nested = Nested::new("above");
        let stranger = user("stranger", 4_000_000, 4_000_000);
        set_mode(&nested.inner(), 0o755);
        for (mode, path) in [(0o755, nested.inner()), (0o700, nested.0.clone())] {
            set_mode(&nested.closed(), mode);
            let site = Site::find(&nested.inner(), Some(&stranger)).unwrap();
            assert_eq!(site.path, path);
            let opened = rustix::fs::fstat(&site.directory).unwrap();
            let facts = std::fs::metadata(&path).unwrap();
            assert_eq!((opened.st_dev, opened.st_ino), (facts.dev(), facts.ino()));
            let detour = (mode == 0o700).then(|| Detour {
                user: "stranger".into(),
                closed: nested.closed(),
                named: nested.inner(),
                inode: std::fs::metadata(nested.inner()).unwrap().ino(),
            });
            assert_eq!(site.detour, detour);
        }
        // Without root's rights the server's user is one's own.
        assert_eq!(
            Site::find(&nested.inner(), None).unwrap().path,
            nested.inner()
        );
    }
}
