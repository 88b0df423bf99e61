//! Two plots, as SVG: the goodput of all policies, and one run whose rule steps.

use std::fmt::Write as _;

use crate::figures::Figures;
use crate::flavour::Flavour;
use crate::options::Options;
use crate::policy::Kind;
use crate::runs::Results;
use crate::scenario::{Case, Letter};
use crate::world::{self, Second};

const WIDTH: f64 = 860.0;
/// Seconds between two points of a line.
const EVERY: usize = 3;
const INK: &str = "#1f2933";
const FAINT: &str = "#d9dee3";
const MEASURED: [(Kind, &str); 6] = [
    (Kind::Ours, "#d6330f"),
    (Kind::FixedRight, "#7b8794"),
    (Kind::FixedTwice, "#cbb26a"),
    (Kind::Aimd, "#1f77b4"),
    (Kind::Vegas, "#2c9a62"),
    (Kind::Gradient2, "#8e5bb5"),
];

struct Svg(String);

impl Svg {
    fn new(height: f64) -> Self {
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"12\">\n"
        );
        writeln!(
            text,
            "<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>"
        )
        .unwrap();
        Self(text)
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{INK}\">{text}</text>"
        )
        .unwrap();
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        writeln!(
            self.0,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
            from.0, from.1, to.0, to.1
        )
        .unwrap();
    }

    fn dot(&mut self, x: f64, y: f64, radius: f64, colour: &str) {
        writeln!(
            self.0,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\" \
             fill-opacity=\"0.85\"/>"
        )
        .unwrap();
    }

    fn path(&mut self, points: &[(f64, f64)], colour: &str, style: &str) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        writeln!(
            self.0,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" {style}/>",
            points.join(" ")
        )
        .unwrap();
    }

    fn end(mut self) -> String {
        self.0 += "</svg>\n";
        self.0
    }
}

/// Goodput and throttled calls of every policy in every case, a line each.
pub fn goodput(options: &Options, results: &Results) -> String {
    const ROW: f64 = 19.0;
    const TOP: f64 = 72.0;
    let rows = options.cases.len() as f64;
    let mut svg = Svg::new(TOP + ROW * rows + 30.0);
    for (nth, (kind, colour)) in MEASURED.into_iter().enumerate() {
        let at = 130.0 + 118.0 * nth as f64;
        svg.dot(at + 5.0, 18.0, 5.0, colour);
        svg.text(at + 15.0, 22.0, "start", kind.name());
    }
    let goodput = Scale {
        title: "goodput in % of the oracle’s",
        left: 130.0,
        width: 420.0,
        most: 1.4,
        of: Figures::ratio,
    };
    let throttled = Scale {
        title: "throttled in % of all calls",
        left: 590.0,
        width: 240.0,
        most: 1.0,
        of: Figures::throttled_share,
    };
    for scale in [goodput, throttled] {
        scale.frame(&mut svg, TOP, TOP + ROW * rows);
        for (nth, case) in options.cases.iter().enumerate() {
            let y = TOP + ROW * (nth as f64 + 0.5);
            scale.dots(&mut svg, y, |kind| results.get(*case, kind));
        }
    }
    for (nth, case) in options.cases.iter().enumerate() {
        let y = TOP + ROW * (nth as f64 + 0.5);
        svg.text(118.0, y + 4.0, "end", &case.name());
    }
    svg.end()
}

/// One of the columns of dots.
struct Scale {
    title: &'static str,
    left: f64,
    width: f64,
    most: f64,
    of: fn(&Figures) -> f64,
}

impl Scale {
    fn x(&self, share: f64) -> f64 {
        self.left + self.width * share.min(self.most) / self.most
    }

    fn frame(&self, svg: &mut Svg, top: f64, bottom: f64) {
        svg.text(self.left, top - 18.0, "start", self.title);
        let tenths = (self.most * 10.0).round() as u32;
        for tenth in (0..=tenths).step_by(2) {
            let x = self.x(f64::from(tenth) / 10.0);
            let is_all = tenth == 10 && self.most > 1.0;
            let colour = if is_all { INK } else { FAINT };
            svg.line((x, top - 6.0), (x, bottom), colour);
            svg.text(x, bottom + 17.0, "middle", &(tenth * 10).to_string());
        }
    }

    fn dots<'a>(&self, svg: &mut Svg, y: f64, figures: impl Fn(Kind) -> Option<&'a Figures>) {
        svg.line((self.x(0.0), y), (self.x(self.most), y), "#eef1f4");
        for (kind, colour) in MEASURED.into_iter().rev() {
            if let Some(figures) = figures(kind) {
                let radius = if kind == Kind::Ours { 5.5 } else { 4.0 };
                svg.dot(self.x((self.of)(figures)), y, radius, colour);
            }
        }
    }
}

struct Panel {
    top: f64,
    height: f64,
    most: f64,
    seconds: usize,
}

impl Panel {
    const LEFT: f64 = 60.0;

    fn point(&self, second: usize, value: f64) -> (f64, f64) {
        let x = second as f64 / self.seconds as f64;
        let y = 1.0 - (value / self.most).min(1.0);
        (
            Self::LEFT + (WIDTH - Self::LEFT - 20.0) * x,
            self.top + self.height * y,
        )
    }

    fn frame(&self, svg: &mut Svg, title: &str, every: usize) {
        svg.text(Self::LEFT, self.top - 10.0, "start", title);
        for value in (0..=self.most as usize).step_by(every) {
            let from = self.point(0, value as f64);
            let to = self.point(self.seconds, value as f64);
            svg.line(from, to, FAINT);
            svg.text(from.0 - 8.0, from.1 + 4.0, "end", &value.to_string());
        }
        for minute in (0..=self.seconds / 60).step_by(10) {
            let (x, y) = self.point(minute * 60, 0.0);
            svg.line((x, y), (x, y + 4.0), INK);
            svg.text(x, y + 17.0, "middle", &minute.to_string());
        }
    }

    fn draw(&self, svg: &mut Svg, values: impl Iterator<Item = f64>, colour: &str, style: &str) {
        let points: Vec<(f64, f64)> = values
            .enumerate()
            .step_by(EVERY)
            .map(|(second, value)| self.point(second, value))
            .collect();
        svg.path(&points, colour, style);
    }
}

/// One run of (e), bare: the limit in force and the true one; goodput.
pub fn steps(options: &Options) -> String {
    let case = Case {
        letter: Letter::E,
        flavour: Flavour::Bare,
    };
    let play = |kind| world::run(case, kind, options.seed, options.seconds, 1.0).seconds;
    let (ours, oracle) = (play(Kind::Ours), play(Kind::Oracle));
    let panel = |top, most| Panel {
        top,
        height: 190.0,
        most,
        seconds: options.seconds,
    };
    let mut svg = Svg::new(562.0);
    legend(&mut svg);
    let limits = panel(64.0, 64.0);
    limits.frame(&mut svg, "calls at once", 16);
    let truth = (0..options.seconds).map(|second| {
        let truth = case.letter.concurrency_at(second as u64 * 1000);
        f64::from(truth.unwrap_or(0))
    });
    limits.draw(&mut svg, truth, INK, "stroke-dasharray=\"5 3\"");
    let in_force = ours.iter().map(|second| f64::from(second.gauge.limit));
    limits.draw(&mut svg, in_force, MEASURED[0].1, "stroke-width=\"1.5\"");
    let good = panel(322.0, 60.0);
    good.frame(
        &mut svg,
        "accepted calls a second, mean of the last ten",
        20,
    );
    good.draw(&mut svg, trailing(&oracle), INK, "stroke-dasharray=\"5 3\"");
    good.draw(
        &mut svg,
        trailing(&ours),
        MEASURED[0].1,
        "stroke-width=\"1.5\"",
    );
    svg.text(
        WIDTH / 2.0,
        550.0,
        "middle",
        &format!("minutes (429 bare, seed {})", options.seed),
    );
    svg.end()
}

fn legend(svg: &mut Svg) {
    svg.text(
        Panel::LEFT,
        20.0,
        "start",
        "Concurrency 40, 10, 40 … every 10 minutes",
    );
    svg.line((520.0, 16.0), (550.0, 16.0), MEASURED[0].1);
    svg.text(556.0, 20.0, "start", "ours");
    svg.path(
        &[(620.0, 16.0), (650.0, 16.0)],
        INK,
        "stroke-dasharray=\"5 3\"",
    );
    svg.text(656.0, 20.0, "start", "the rule, the oracle");
}

fn trailing(seconds: &[Second]) -> impl Iterator<Item = f64> {
    (0..seconds.len()).map(|last| {
        let part = &seconds[(last + 1).saturating_sub(10)..=last];
        let sum: u32 = part.iter().map(|second| second.accepted).sum();
        f64::from(sum) / part.len() as f64
    })
}
