//! The end of a run: nothing fails any more, nobody comes, and everything must
//! come to rest.

use swarmvia_locks::governor::command::Command;

use crate::object::Memory;
use crate::support::limit;
use crate::worker::Call;
use crate::world::World;

/// Rows that a quiet source may have: `tests/properties.rs` says why.
const ROWS_OF_A_QUIET_SOURCE: usize = 4 * 64 + 10;
/// Longer than any lease, queue or patience here.
const LONG: u64 = 900_000;

impl World {
    /// Lets everything come to its end, and looks at what is left.
    pub fn wind_down(&mut self) {
        self.quiet = true;
        self.plan.calm();
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 100_000, "it never comes to rest");
        }
        self.open();
        assert!(
            self.calls.iter().all(Call::is_done),
            "a call without an end"
        );
        assert!(self.object.waiting.is_empty(), "someone waits for ever");
        self.now += LONG;
        // Whatever became of the alarm: the next call does it.
        self.operator(Command::Tick, Vec::new());
        let Memory::Present(source) = &self.object.memory else {
            assert!(
                self.object.disk.source.is_none(),
                "something is left of a source"
            );
            return;
        };
        let gauge = source.governor.gauge();
        assert_eq!(
            (gauge.in_use, gauge.depth),
            (0, 0),
            "something is never free again"
        );
        assert_eq!(self.books.holders(), 0);
        assert!(!self.books.waits());
        self.storage_is_bounded();
    }

    fn storage_is_bounded(&mut self) {
        let mut quiet = limit(1);
        quiet.log.keep = 100;
        self.put(quiet);
        for _ in 0..12 {
            self.turned_away();
        }
        self.now += LONG;
        for _ in 0..60 {
            self.operator(Command::Tick, Vec::new());
        }
        let rows = &self
            .object
            .disk
            .source
            .as_ref()
            .expect("a source")
            .rows
            .rows;
        assert!(rows.len() <= ROWS_OF_A_QUIET_SOURCE, "{} rows", rows.len());
    }
}
