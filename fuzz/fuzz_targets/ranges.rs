//! Whatever is typed as the loads of a curve, it is few loads, ascending and above zero, or refused with exit status 2.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_verbs::curve::Loads;
use rigel::cli::ranges;

fuzz_target!(|text: &str| {
    for loads in [ranges::depths("--depth", text), ranges::rates(text)] {
        let loads: Vec<f64> = match loads {
            Ok(Loads::Depths(depths)) => depths.into_iter().map(f64::from).collect(),
            Ok(Loads::Rates(rates)) => rates.into_iter().map(|rate| rate as f64).collect(),
            Ok(Loads::Percents(percents)) => percents,
            Err(error) => {
                assert_eq!(error.exit_status(), 2);
                continue;
            }
        };
        assert!((1..=200).contains(&loads.len()) && loads[0] > 0.0);
        assert!(loads.windows(2).all(|two| two[0] < two[1]));
    }
    if let Ok(mix) = ranges::mix(text) {
        assert!((0.0..=1.0).contains(&mix.writes.get()));
    }
    if let Ok(background) = ranges::background(text) {
        assert!(background.depth > 0 && background.length > 0);
    }
});
