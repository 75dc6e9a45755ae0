//! A panel with axes: ticks, layers, names of series. Where the panel lies is the layout's business.

use super::axis::{Extent, Fitted, Tick, with_room};
use super::figure::{Axes, Layer, Panel, Scale, Series, Span, Spread, Style};
use super::font;
use super::layers::Place;
use super::marks::MARK;
use super::pen::Pen;
use super::scene::{Anchor, Area, Path, Shape};
use super::theme::mixed;

/// From a line of text to the next, in its size.
const LINE: f64 = 1.15;
/// From a tick to its label.
const GAP: f64 = 4.0;
/// About so many ticks stand on an upright axis.
const UPRIGHT_TICKS: f64 = 5.0;

/// Room around the area between the axes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Margins {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Which axis titles and names of categories a panel has; a neighbour's that say the same are enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) x_title: bool,
    pub(super) y_title: bool,
    pub(super) categories: bool,
}

/// Names of categories take this share of a panel's width, at most.
pub(super) const CATEGORIES: f64 = 0.42;

/// A panel whose axes have their ends.
pub(super) struct Ready<'a> {
    panel: &'a Panel,
    axes: &'a Axes,
    x: Fitted<'a>,
    y: Fitted<'a>,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    /// So many lines the names of categories on y take at most.
    lines: usize,
    /// Whether labels of the x axis are slanted.
    slanted: bool,
    /// Whether series are named at the ends of their lines.
    direct: bool,
    shown: Shown,
}

impl<'a> Ready<'a> {
    /// `width`: of the panel with its margins.
    pub(super) fn of(
        (panel, axes): (&'a Panel, &'a Axes),
        pen: &Pen,
        width: f64,
        direct: bool,
        shown: Shown,
    ) -> Self {
        let x_target = (width / (5.0 * pen.size)).clamp(2.0, 9.0);
        let x = Fitted::of(&axes.x, &extents(axes, Spread::X), x_target);
        let y = Fitted::of(&axes.y, &extents(axes, Spread::Y), UPRIGHT_TICKS);
        let (mut x_ticks, mut y_ticks) = (x.ticks(x_target), y.ticks(UPRIGHT_TICKS));
        if matches!(axes.y.scale, Scale::Categories(_)) {
            for tick in &mut y_ticks {
                tick.label = font::wrapped(&tick.label, pen.size, CATEGORIES * width).join("\n");
            }
        }
        let lines = y_ticks.iter().map(|tick| tick.label.lines().count()).max().unwrap_or(1);
        if !shown.categories {
            y_ticks.iter_mut().for_each(|tick| tick.label.clear());
        }
        let mut slanted = false;
        if let Scale::Categories(names) = &axes.x.scale {
            let short = font::shortened_apart(names, pen.size, 0.4 * width);
            x_ticks.iter_mut().zip(short).for_each(|(tick, name)| tick.label = name);
            let slot = 0.75 * width / names.len().max(1) as f64;
            slanted = x_ticks.iter().any(|tick| pen.width(&tick.label) + 3.0 > slot);
        }
        Ready { panel, axes, x, y, x_ticks, y_ticks, lines, slanted, direct, shown }
    }

    pub(super) fn has_x_title(&self) -> bool {
        self.shown.x_title && !self.axes.x.label.is_empty()
    }

    pub(super) fn has_y_title(&self) -> bool {
        self.shown.y_title && !self.axes.y.label.is_empty()
    }

    pub(super) fn margins(&self, pen: &Pen) -> Margins {
        let widest = |ticks: &[Tick]| {
            let lines = ticks.iter().flat_map(|tick| tick.label.lines());
            lines.map(|line| pen.width(line)).fold(0.0, f64::max)
        };
        let title = |has: bool, sizes: f64| if has { sizes * pen.size } else { 0.0 };
        let has_names = self.spans().any(|span| !span.label.is_empty());
        let under = match self.slanted {
            true => widest(&self.x_ticks) * SLANT.to_radians().sin() + pen.size,
            false => 1.2 * pen.size,
        };
        let last = self.x_ticks.last().map_or(0.0, |tick| pen.width(&tick.label));
        let names = if self.direct { self.names(pen) } else { 0.0 };
        Margins {
            left: widest(&self.y_ticks) + GAP + title(self.has_y_title(), 1.5) + 2.0,
            right: names.max(if self.slanted { 2.0 } else { last / 2.0 }) + 2.0,
            top: if has_names { 1.4 } else { 0.6 } * pen.size,
            bottom: GAP + under + title(self.has_x_title(), 1.3),
        }
    }

    /// Height between the axes, where the width between them is known.
    pub(super) fn height(&self, pen: &Pen, width: f64) -> f64 {
        match &self.axes.y.scale {
            Scale::Categories(names) => {
                let marks = self.dodged().count().max(1) as f64;
                let text = (LINE * self.lines as f64 + 0.4) * pen.size;
                let row = text.max(marks * 2.4 * MARK + 0.25 * pen.size);
                row * names.len().max(1) as f64
            }
            _ => width * self.axes.aspect,
        }
    }

    fn spans(&self) -> impl Iterator<Item = &'a Span> {
        self.axes.layers.iter().filter_map(|layer| match layer {
            Layer::Span(span) => Some(span),
            _ => None,
        })
    }

    fn names(&self, pen: &Pen) -> f64 {
        self.named().map(|series| pen.width(&series.label) + 8.0).fold(0.0, f64::max)
    }

    fn named(&self) -> impl Iterator<Item = &'a Series> {
        series(self.axes).filter(|series| !series.label.is_empty() && !series.points.is_empty())
    }

    /// Series that lie beside each other where they share a place.
    fn dodged(&self) -> impl Iterator<Item = &'a Series> {
        series(self.axes).filter(|series| matches!(series.style, Style::Marks | Style::Joined))
    }

    pub(super) fn draw(&self, pen: &Pen, area: Area, shapes: &mut Vec<Shape>) {
        let to_x = |value: f64| area.left + self.x.share(value) * area.width();
        let is_list = matches!(self.axes.y.scale, Scale::Categories(_));
        let to_y = |value: f64| match self.y.share(value) {
            share if is_list => area.top + share * area.height(),
            share => area.bottom - share * area.height(),
        };
        let place = Place { pen, panel: self.panel, axes: self.axes, area, x: &to_x, y: &to_y };
        self.spans().for_each(|span| place.span(span, shapes));
        self.frame(&place, is_list, shapes);
        let beside = self.dodged().count();
        let mut number = 0;
        for layer in &self.axes.layers {
            match layer {
                Layer::Span(_) => {}
                Layer::Bars(bars) => {
                    shapes.push(Shape::Begin(self.panel.series_name(&bars.label)));
                    place.bars(bars, shapes);
                    shapes.push(Shape::End);
                }
                Layer::Rule { at, label } => place.rule(*at, label, shapes),
                Layer::Series(series) => {
                    let is_beside = matches!(series.style, Style::Marks | Style::Joined);
                    let aside =
                        if is_beside { place.aside(series.spread, number, beside) } else { 0.0 };
                    number += usize::from(is_beside);
                    shapes.push(Shape::Begin(self.panel.series_name(&series.label)));
                    place.series(series, aside, shapes);
                    shapes.push(Shape::End);
                }
            }
        }
        if self.direct {
            self.name_ends(&place, shapes);
        }
    }

    fn frame(&self, place: &Place<'_>, is_list: bool, shapes: &mut Vec<Shape>) {
        let (pen, area) = (place.pen, place.area);
        let line = pen.stroke(pen.theme.line(), 0.7);
        let guide = pen.stroke(pen.theme.grid(), 0.6);
        let mut path = |from, to, stroke| shapes.push(Shape::Path(Path::line(from, to, stroke)));
        let x_ticks = match &self.axes.x.scale {
            Scale::Categories(_) => self.x_ticks.clone(),
            _ => with_room(self.x_ticks.clone(), pen.size, place.x),
        };
        for tick in &self.y_ticks {
            let y = (place.y)(tick.at);
            if !is_list {
                path((area.left, y), (area.right, y), guide);
            }
        }
        for tick in &x_ticks {
            let x = (place.x)(tick.at);
            match is_list {
                true => path((x, area.top), (x, area.bottom), guide),
                false => path((x, area.bottom), (x, area.bottom + 2.5), line),
            }
        }
        path((area.left, area.bottom), (area.right, area.bottom), line);
        path((area.left, area.top), (area.left, area.bottom), line);
        for tick in &self.y_ticks {
            let above = (tick.label.lines().count().max(1) - 1) as f64 / 2.0;
            for (i, line) in tick.label.lines().enumerate() {
                let down = (i as f64 - above) * LINE * pen.size;
                let at = (area.left - GAP, (place.y)(tick.at) + down + pen.drop());
                shapes.push(pen.text(at, Anchor::End, line));
            }
        }
        for tick in &x_ticks {
            let x = (place.x)(tick.at);
            shapes.push(match self.slanted {
                true => pen.turned(
                    (x + pen.drop(), area.bottom + GAP + pen.drop() * 1.6),
                    Anchor::End,
                    &tick.label,
                    -SLANT,
                ),
                false => {
                    pen.text((x, area.bottom + GAP + 0.85 * pen.size), Anchor::Middle, &tick.label)
                }
            });
        }
    }

    /// Names at the ends of lines, moved apart where they would meet.
    fn name_ends(&self, place: &Place<'_>, shapes: &mut Vec<Shape>) {
        let (pen, area) = (place.pen, place.area);
        let mut names: Vec<(f64, f64, &Series)> = self
            .named()
            .filter_map(|series| {
                let last = series.points.iter().max_by(|a, b| a.x.total_cmp(&b.x))?;
                Some(((place.y)(last.y), (place.y)(last.y), series))
            })
            .collect();
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Those that end together are named in the order of the series.
        let order = |series: &Series| self.named().position(|other| std::ptr::eq(other, series));
        for end in 1..names.len() {
            let mut i = end;
            while 0 < i
                && names[i].0 - names[i - 1].0 < 0.25 * pen.size
                && order(names[i].2) < order(names[i - 1].2)
            {
                names.swap(i - 1, i);
                i -= 1;
            }
        }
        let mut wanted: Vec<f64> = names.iter().map(|name| name.0).collect();
        spread(&mut wanted, 1.15 * pen.size, (area.top + pen.drop(), area.bottom - pen.drop()));
        for (name, y) in names.iter_mut().zip(wanted) {
            name.1 = y;
        }
        for (from, y, series) in names {
            let colour = pen.theme.of(series.tone);
            shapes.push(Shape::Begin(self.panel.series_name(&series.label)));
            if (from - y).abs() > 1.0 {
                let guide = pen.stroke(mixed(colour, pen.theme.background(), 0.5), 0.5);
                let ends = ((area.right + 1.0, from), (area.right + 5.5, y));
                shapes.push(Shape::Path(Path::line(ends.0, ends.1, guide)));
            }
            let colour = mixed(colour, pen.theme.text(), 0.75);
            let at = (area.right + 7.0, y + pen.drop());
            shapes.push(pen.coloured(at, Anchor::Start, &series.label, colour));
            shapes.push(Shape::End);
        }
    }
}

/// Degrees by which labels are slanted that have no room side by side.
const SLANT: f64 = 40.0;

fn series(axes: &Axes) -> impl Iterator<Item = &Series> {
    axes.layers.iter().filter_map(|layer| match layer {
        Layer::Series(series) => Some(series),
        _ => None,
    })
}

/// All that lies along one axis.
fn extents(axes: &Axes, along: Spread) -> Vec<Extent> {
    let mut extents = Vec::new();
    for layer in &axes.layers {
        match layer {
            Layer::Series(series) => extents.extend(series.points.iter().map(|point| {
                let value = if along == Spread::X { point.x } else { point.y };
                match series.spread == along {
                    true => (value, point.low, point.high),
                    false => (value, None, None),
                }
            })),
            Layer::Bars(bars) if bars.on != along => extents.extend(
                bars.bars.iter().flat_map(|bar| [(bar.from, None, None), (bar.to, None, None)]),
            ),
            Layer::Span(span) if along == Spread::X => {
                extents.extend([(span.from, None, None), (span.to, None, None)]);
            }
            Layer::Rule { at, .. } if along == Spread::Y => extents.push((*at, None, None)),
            Layer::Bars(_) | Layer::Span(_) | Layer::Rule { .. } => {}
        }
    }
    extents
}

/// Whether some interval ends beyond its axis.
pub(super) fn is_cut(axes: &Axes) -> bool {
    let is_beyond = |axis, along| {
        let extents = extents(axes, along);
        let fitted = Fitted::of(axis, &extents, UPRIGHT_TICKS);
        let mut ends = extents.iter().flat_map(|extent| [extent.1, extent.2]).flatten();
        ends.any(|end| !fitted.has(end))
    };
    is_beyond(&axes.x, Spread::X) || is_beyond(&axes.y, Spread::Y)
}

/// Move sorted places apart by `gap` at least, between two ends as far as that goes.
fn spread(places: &mut [f64], gap: f64, (least, most): (f64, f64)) {
    let mut free = least;
    for place in places.iter_mut() {
        *place = place.max(free);
        free = *place + gap;
    }
    let mut free = most;
    for place in places.iter_mut().rev() {
        *place = place.min(free);
        free = *place - gap;
    }
}
