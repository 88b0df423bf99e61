//! What wakes the object: one timer while anyone waits, and the alarm.

use swarmvia_locks::governor::command::Command;
use swarmvia_locks::governor::time::{Millis, Span};

use crate::books::Cause;
use crate::coverage::Seen;
use crate::disk::Write;
use crate::gate::Written;
use crate::object::{Memory, Source, TIMER_LATE};
use crate::support::ms;
use crate::world::{Event, World};

impl World {
    /// The alarm stands at the first lease's end or earlier, the timer at the
    /// deadline while anyone waits. Both are only moved forward.
    pub fn arm(&mut self, source: &mut Source, clock: Millis) -> Option<Write> {
        let end = source.governor.earliest_lease_end();
        let end = end.filter(|end| source.armed.is_none_or(|armed| *end < armed));
        let alarm = end.map(|end| {
            source.armed = Some(end);
            self.alarm_at(end.max(clock.plus(ms(1))))
        });
        match source
            .governor
            .deadline()
            .filter(|_| source.governor.has_waiters())
        {
            None => {
                self.object.timer = None;
                self.object.jumped = 0;
            }
            Some(at) => {
                if self.object.timer.is_none_or(|(armed, _)| armed > at) {
                    let number = self.number();
                    self.object.timer = Some((at, number));
                    self.object.jumped = 0;
                    let delay = at.since(clock).ms().max(1) + self.rng.below(TIMER_LATE);
                    self.schedule(delay, Event::Timer(number));
                }
            }
        }
        alarm
    }

    fn alarm_at(&mut self, at: Millis) -> Write {
        Write::Alarm(self.number(), at)
    }

    pub fn ring(&mut self, number: u64) {
        if self
            .object
            .timer
            .is_some_and(|(_, stands)| stands == number)
        {
            self.object.timer = None;
            self.read();
            self.turn(Cause::Timer, Command::Tick, Vec::new(), None);
        }
    }

    /// The alarm has rung; `again`: it does so without standing anywhere.
    pub fn alarm(&mut self, number: u64, again: bool) {
        let stands = self.object.disk.alarm == Some(number);
        if !stands && !again {
            return;
        }
        if stands {
            self.object.disk.alarm = None;
        }
        self.read();
        let Memory::Present(source) = &mut self.object.memory else {
            return;
        };
        source.armed = None;
        if self
            .turn(Cause::Alarm, Command::Tick, Vec::new(), None)
            .is_none()
        {
            self.coverage.saw(Seen::AlarmAgain);
            let at = self.clock().plus(Span::from_seconds(1));
            let writes = vec![self.alarm_at(at)];
            self.written(Written {
                writes,
                ..Written::default()
            });
        }
    }
}
