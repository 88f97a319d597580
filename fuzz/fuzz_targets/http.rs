//! Whatever is sent to the server of metrics, it is answered by a whole head of HTTP, or more is waited for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel::serve;

fuzz_target!(|bytes: &[u8]| {
    let answer = serve::respond(bytes, &|accept: &str| ("text/plain", accept.as_bytes().into()));
    match answer {
        Some(answer) => {
            let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head has an end");
            let head = std::str::from_utf8(&answer[..end]).expect("a head is text");
            assert!(head.starts_with("HTTP/1.1 ") && head.lines().all(|line| !line.contains('\r')), "{head}");
        }
        None => assert!(bytes.len() <= 8 * 1024),
    }
});
