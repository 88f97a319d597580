#!/bin/sh
# `cargo test --doc` calls this in place of rustdoc (RUSTDOC). It makes the documentation where rustdoc would run its
# examples: from what the tests have compiled, which `cargo doc` would check once more.
for argument; do
    shift
    case $argument in
        --test) ;;
        --test-run-directory) drop=1 ;;
        *) [ "${drop:-}" ] || set -- "$@" "$argument" && drop= ;;
    esac
done
exec rustdoc "$@" -D warnings --out-dir "${CARGO_TARGET_DIR:-target}/doc"
