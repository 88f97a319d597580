//! Oracle's own calibration, `DBMS_RESOURCE_MANAGER.CALIBRATE_IO`: a file that runs it and prints its
//! result.

use super::ScriptFile;

/// The files.
pub fn calibrate_io() -> Vec<ScriptFile> {
    vec![
        ScriptFile {
            name: "README.txt",
            text: include_str!("oracle/calibrate_io.txt").into(),
        },
        ScriptFile {
            name: "calibrate_io.sql",
            text: include_str!("oracle/calibrate_io.sql").into(),
        },
    ]
}
