//! What a point of a verb is for one rank of several.

#[cfg(test)]
mod tests {
    use crate::calibrate::CalibrateRequest;
    use crate::curve::Loads;
    use crate::curve::plan::tests::request;
    use ActiveRanks::{All, First, Only};
    use rigel_analyse::plan::ranks::{beside, next_beside, of_rank};
    use rigel_model::{ActiveRanks, Coordinates, Load, Pattern, Point};

    #[test]
    fn ranks_share_a_rate_and_read_blocks_of_their_own() {
        let usable = 1 << 30;
        let request = CalibrateRequest::DEFAULT;
        let at = |coordinates| request.point(coordinates, usable, 7);
        let rate = at(Coordinates::Rate {
            rate_per_s: 900,
            in_flight_max: 64,
            large_beside: 0,
        });
        let parts: Vec<Point> = (0..3)
            .filter_map(|rank| of_rank(&rate, rank, 3, usable))
            .collect();
        let rates: Vec<Load> = parts.iter().map(|part| part.streams[0].load).collect();
        let each =
            |load: &Load| matches!(load, Load::Open { rate, .. } if (*rate - 300.0).abs() < 1e-9);
        assert!(rates.len() == 3 && rates.iter().all(each), "{rates:?}");
        assert_ne!(parts[0].seed, parts[1].seed);
        let stream = at(Coordinates::Stream);
        let start = |rank| of_rank(&stream, rank, 4, usable).unwrap().streams[0].pattern;
        assert_eq!(start(0), Pattern::Sequential { start: 0 });
        assert_eq!(start(3), Pattern::Sequential { start: 768 });
    }

    #[test]
    fn one_rank_keeps_its_rate_while_its_neighbours_climb() {
        assert_eq!(next_beside(1, (500, 64), &[]), None);
        let first = next_beside(3, (500, 64), &[]).unwrap();
        assert_eq!(first, beside(3, (500, 64), 0, 1));
        assert_eq!(first.active_ranks(), Only(2));
        let mut request = request(Loads::Depths(vec![1]));
        request.sql = None;
        let point = request.point(beside(3, (500, 64), 16, 1), 1 << 30, 7);
        assert_eq!(point.coordinates.active_ranks(), All);
        let loads = |rank| -> Vec<Load> {
            let own = of_rank(&point, rank, 3, 1 << 30).unwrap();
            own.streams.iter().map(|stream| stream.load).collect()
        };
        assert_eq!(loads(0), [Load::Closed { depth: 16 }]);
        assert_eq!(loads(1), loads(0));
        let own = loads(2);
        assert!(
            matches!(own[..], [Load::Open { rate, .. }] if (rate - 500.0).abs() < 1e-9),
            "{own:?}"
        );
    }

    #[test]
    fn in_rounds_those_that_wait_measure_nothing_and_the_others_have_their_own_load() {
        let request = CalibrateRequest::DEFAULT;
        let point = |active, rate_per_s| {
            let at = Coordinates::Hosts {
                active,
                depth: 8,
                rate_per_s,
                round: 1,
            };
            request.point(at, 1 << 30, 7)
        };
        let active = |point: &Point| -> Vec<u32> {
            (0..4)
                .filter(|rank| of_rank(point, *rank, 4, 1 << 30).is_some())
                .collect()
        };
        assert_eq!(active(&point(First(2), 0)), [0, 1]);
        assert_eq!(active(&point(Only(3), 0)), [3]);
        assert_eq!(active(&point(All, 0)), [0, 1, 2, 3]);
        let own = of_rank(&point(All, 100), 1, 4, 1 << 30).unwrap();
        assert!(
            matches!(own.streams[0].load, Load::Open { rate, .. } if (rate - 100.0).abs() < 1e-9)
        );
        let closed = of_rank(&point(All, 0), 1, 4, 1 << 30).unwrap();
        assert_eq!(closed.streams[0].load, Load::Closed { depth: 8 });
    }
}
