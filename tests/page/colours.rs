//! The colours of the style sheet, light and dark: text and lines have enough contrast with the
//! background, and everybody can distinguish the eight series.

use std::collections::BTreeMap;

const STYLE: &str = include_str!("../../crates/report/src/html/assets/rigel.css");

/// How eyes without one of the three receptors see a colour, by Machado, Oliveira and Fernandes
/// (2009), with severity 1: all receptors, no green one, no red one.
const EYES: [[[f64; 3]; 3]; 3] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ],
    [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ],
];

/// Minimum distance in CIELAB for two adjacent lines to be distinguishable; 2.3 is just noticeable.
const APART: f64 = 20.0;

/// The colours of each theme: light, dark by the button, dark by the system.
fn themes() -> Vec<BTreeMap<&'static str, [f64; 3]>> {
    let blocks = STYLE
        .split("--paper:")
        .skip(1)
        .map(|rest| rest.split_once("color-scheme").unwrap().0);
    let named = |block: &'static str| {
        let all = block.split(';').filter_map(|one| one.split_once(": #"));
        let all =
            all.map(|(name, digits)| (name.trim().trim_start_matches("--"), linear(digits.trim())));
        all.chain([(
            "paper",
            linear(
                block
                    .split(';')
                    .next()
                    .unwrap()
                    .trim()
                    .trim_start_matches('#'),
            ),
        )])
        .collect()
    };
    blocks.map(named).collect()
}

/// Linear light of a colour, from its six digits.
fn linear(digits: &str) -> [f64; 3] {
    std::array::from_fn(|part| {
        let part =
            f64::from(u8::from_str_radix(&digits[2 * part..2 * part + 2], 16).unwrap()) / 255.0;
        if part <= 0.040_45 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    })
}

fn mixed(matrix: [[f64; 3]; 3], light: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| {
        row.iter()
            .zip(light)
            .map(|(share, part)| share * part)
            .sum()
    })
}

fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let [one, other] =
        [one, other].map(|[red, green, blue]| 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05);
    (one / other).max(other / one)
}

/// Distance of two colours for these eyes, in CIELAB.
fn distance(eyes: [[f64; 3]; 3], one: [f64; 3], other: [f64; 3]) -> f64 {
    const TO_XYZ: [[f64; 3]; 3] = [
        [0.4339, 0.3763, 0.1899],
        [0.2126, 0.7152, 0.0722],
        [0.0177, 0.1094, 0.8728],
    ];
    let [one, other] = [one, other].map(|light| {
        let [x, y, z] = mixed(TO_XYZ, mixed(eyes, light).map(|part| part.max(0.0))).map(|part| {
            if part > 0.008_856 {
                part.cbrt()
            } else {
                7.787 * part + 16.0 / 116.0
            }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    });
    one.iter()
        .zip(other)
        .map(|(one, other)| (one - other).powi(2))
        .sum::<f64>()
        .sqrt()
}

#[test]
fn text_and_lines_stand_out_from_the_ground() {
    let themes = themes();
    assert_eq!(themes.len(), 3);
    assert_eq!(themes[1], themes[2], "dark by the button and by the system");
    for colours in themes {
        // The requirements of WCAG 2 for text, and for graphics. Charts are only on paper.
        let texts = ["ink", "soft", "link", "good", "plain", "warning", "bad"];
        let lines = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
        let all = texts
            .iter()
            .flat_map(|name| [(name, "paper", 4.5), (name, "raised", 4.5)]);
        for (name, ground, least) in all.chain(lines.iter().map(|name| (name, "paper", 3.0))) {
            let found = contrast(colours[name], colours[ground]);
            assert!(found >= least, "{name} on {ground}: {found:.2}");
        }
    }
}

#[test]
fn series_are_distinguishable_with_colour_blindness() {
    for colours in themes() {
        for eyes in EYES {
            for one in 0..8 {
                for other in 0..one {
                    let of = |number: i32| colours[format!("c{number}").as_str()];
                    let found = distance(eyes, of(one), of(other));
                    assert!(found >= APART, "c{one} and c{other} are {found:.1} apart");
                }
            }
        }
    }
}
