//! Users of a database who put code where Rigel would run it: they gain none of the rights of the
//! user that Rigel connects as.

use super::common::{Place, test};
use super::psql::Psql;
use super::{client, ends, number, postgres_15, postgres_18, program, serve, stderr};

/// Makes the user `mallory` with a function that makes her a superuser if a superuser calls it, and
/// returns her session.
fn mallory(owner: &mut Psql, url: &str) -> Psql {
    owner
        .run(
            "CREATE ROLE mallory LOGIN; GRANT CREATE ON SCHEMA public TO PUBLIC; GRANT CREATE ON \
             DATABASE postgres TO mallory",
        )
        .unwrap();
    let mut mallory = client(&url.replacen("rigel@", "mallory@", 1));
    mallory
        .run(
            "CREATE FUNCTION public.rise() RETURNS void LANGUAGE plpgsql AS $$ BEGIN IF (SELECT \
             rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN ALTER ROLE \
             mallory SUPERUSER; END IF; END $$",
        )
        .unwrap();
    mallory
}

/// True if `mallory` is a superuser.
fn has_risen(owner: &mut Psql) -> bool {
    number(
        owner,
        "SELECT rolsuper::int FROM pg_catalog.pg_roles WHERE rolname = 'mallory'",
    ) == 1
}

/// Checks that a statement of a superuser makes her one, and takes it from her again: otherwise a
/// test would prove nothing.
#[track_caller]
fn assert_works(owner: &mut Psql, statement: &str) {
    owner.run(statement).unwrap();
    assert!(has_risen(owner), "{statement} runs no code of mallory");
    owner.run("ALTER ROLE mallory NOSUPERUSER").unwrap();
}

#[test]
fn an_operator_of_another_user_is_not_run_by_a_watch() {
    test("an_operator_of_another_user_is_not_run_by_a_watch", || {
        for bin in [postgres_15()?, postgres_18()?] {
            let place = Place::in_memory("sql-operator");
            let server = serve(&bin, &place, &[]);
            let (url, mut owner) = (server.url(), client(server.url()));
            mallory(&mut owner, url)
                .run(
                    "CREATE FUNCTION public.product(float8, int4) RETURNS float8 LANGUAGE plpgsql \
                     AS $$ BEGIN PERFORM public.rise(); RETURN 0; END $$; CREATE OPERATOR \
                     public.* (LEFTARG = float8, RIGHTARG = int4, FUNCTION = public.product)",
                )
                .unwrap();
            assert_works(&mut owner, "SELECT 1::float8 * 1000");
            let line = format!("watch {url} --every 1s --for 2s --no-progress --out run");
            ends(&place, &line, 0);
            assert!(!has_risen(&mut owner), "by watch");
            for line in [
                format!("sql load {url} --scale 2000"),
                format!("sql run {url} -t 1 --work-loop 3 --warm-up 0s --no-progress --out bench"),
                format!("sql drop {url}"),
            ] {
                ends(&place, &line, 0);
                assert!(!has_risen(&mut owner), "by {line}");
            }
        }
        Ok(())
    });
}

#[test]
fn tables_that_could_run_code_of_another_user_are_left_alone() {
    test(
        "tables_that_could_run_code_of_another_user_are_left_alone",
        || {
            let place = Place::in_memory("sql-not-trusted");
            let server = serve(&postgres_15()?, &place, &[]);
            let (url, mut owner) = (server.url(), client(server.url()));
            let mut mallory = mallory(&mut owner, url);
            let is_refused = |owner: &mut Psql, words: &str| {
                for verb in ["load", "run", "drop"] {
                    let output = program(&place, &format!("sql {verb} {url}"))
                        .output()
                        .unwrap();
                    let said = stderr(&output);
                    assert!(!has_risen(owner), "by sql {verb}, which said: {said}");
                    assert!(
                        output.status.code() == Some(2) && said.contains(words),
                        "{verb}: {said}"
                    );
                }
            };
            // A schema of hers, with a view.
            mallory
                .run(
                    "CREATE SCHEMA rigel; CREATE FUNCTION rigel.lured() RETURNS text LANGUAGE \
                     plpgsql AS $$ BEGIN PERFORM public.rise(); RETURN 'rigel sql load'; END $$; \
                     CREATE VIEW rigel.manifest AS SELECT rigel.lured() AS maker, 1::bigint AS \
                     schemas, 2000::bigint AS scale, 0::bigint AS scan_blocks, 8192::bigint AS \
                     block, true AS loaded",
                )
                .unwrap();
            assert_works(&mut owner, "SELECT maker FROM rigel.manifest");
            is_refused(
                &mut owner,
                "a schema named rigel of mallory, who could make it run code",
            );
            mallory.run("DROP SCHEMA rigel CASCADE").unwrap();

            // Tables of ours that somebody changed.
            ends(&place, &format!("sql load {url} --scale 2000"), 0);
            let trigger = "CREATE FUNCTION public.lured() RETURNS trigger LANGUAGE plpgsql AS $$ \
                           BEGIN PERFORM public.rise(); RETURN new; END $$; CREATE TRIGGER lured \
                           BEFORE UPDATE ON rigel.manifest FOR EACH ROW EXECUTE FUNCTION \
                           public.lured()";
            owner
                .run(
                    "GRANT USAGE ON SCHEMA rigel TO mallory; GRANT TRIGGER ON rigel.manifest TO \
                     mallory",
                )
                .unwrap();
            mallory.run(trigger).unwrap();
            assert_works(&mut owner, "UPDATE rigel.manifest SET loaded = true");
            is_refused(&mut owner, "named rigel.manifest that has a trigger");
            for (make, end, words) in [
                (
                    "CREATE RULE lured AS ON UPDATE TO rigel.blocks_1 DO ALSO SELECT 1",
                    "DROP RULE lured ON rigel.blocks_1",
                    "named rigel.blocks_1 that has a rule",
                ),
                (
                    "ALTER TABLE rigel.chunks ENABLE ROW LEVEL SECURITY",
                    "ALTER TABLE rigel.chunks DISABLE ROW LEVEL SECURITY",
                    "named rigel.chunks that has row security",
                ),
                (
                    "ALTER TABLE rigel.scan_1 OWNER TO mallory",
                    "ALTER TABLE rigel.scan_1 OWNER TO CURRENT_USER",
                    "named rigel.scan_1 of mallory, who could make it run code",
                ),
                (
                    "ALTER TABLE rigel.chunks RENAME TO away; CREATE VIEW rigel.chunks AS SELECT \
                     * FROM rigel.away",
                    "DROP VIEW rigel.chunks; ALTER TABLE rigel.away RENAME TO chunks",
                    "named rigel.chunks that is not a plain table",
                ),
            ] {
                owner
                    .run("DROP TRIGGER IF EXISTS lured ON rigel.manifest")
                    .unwrap();
                owner.run(make).unwrap();
                is_refused(&mut owner, words);
                owner.run(end).unwrap();
            }
            ends(&place, &format!("sql drop {url}"), 0);
            Ok(())
        },
    );
}
