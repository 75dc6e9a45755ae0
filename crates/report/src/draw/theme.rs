//! Colours: those of Okabe and Ito (Color Universal Design, 2008), which are told apart with any eyes, on light and on dark.

use super::figure::Tone;

/// Red, green, blue, opacity.
pub(super) type Colour = [u8; 4];

/// Light or dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Black on white.
    Light,
    /// White on near-black.
    Dark,
}

/// Blue, vermilion, bluish green, reddish purple, orange, sky blue, and grey for a seventh; no yellow, which is lost on white.
const ON_LIGHT: [[u8; 3]; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [110, 110, 110],
];

/// The same, without the blue, which is lost on black.
const ON_DARK: [[u8; 3]; 7] = [
    [86, 180, 233],
    [230, 159, 0],
    [0, 178, 130],
    [224, 150, 190],
    [240, 228, 66],
    [233, 110, 30],
    [160, 160, 160],
];

/// So many colours there are; beyond, shapes of marks tell series apart.
const HUES: usize = ON_LIGHT.len();

impl Theme {
    pub(super) fn background(self) -> Colour {
        match self {
            Theme::Light => [255, 255, 255, 255],
            Theme::Dark => [24, 24, 27, 255],
        }
    }

    pub(super) fn text(self) -> Colour {
        match self {
            Theme::Light => [26, 26, 26, 255],
            Theme::Dark => [230, 230, 230, 255],
        }
    }

    /// Axes and ticks.
    pub(super) fn line(self) -> Colour {
        match self {
            Theme::Light => [90, 90, 90, 255],
            Theme::Dark => [150, 150, 150, 255],
        }
    }

    /// Lines that only guide the eye.
    pub(super) fn grid(self) -> Colour {
        match self {
            Theme::Light => [228, 228, 228, 255],
            Theme::Dark => [52, 52, 56, 255],
        }
    }

    pub(super) fn of(self, tone: Tone) -> Colour {
        let hues = match self {
            Theme::Light => &ON_LIGHT,
            Theme::Dark => &ON_DARK,
        };
        let hue = |number: usize| {
            let [red, green, blue] = hues[number % HUES];
            [red, green, blue, 255]
        };
        match (tone, self) {
            (Tone::Hue(number), _) => hue(number),
            (Tone::Plain, _) => self.text(),
            (Tone::Faint, Theme::Light) => [214, 214, 214, 255],
            (Tone::Faint, Theme::Dark) => [74, 74, 80, 255],
            (Tone::Good, _) => hue(2),
            (Tone::Bad, Theme::Light) => hue(1),
            (Tone::Bad, Theme::Dark) => hue(5),
            (Tone::Open, Theme::Light) => [200, 200, 200, 255],
            (Tone::Open, Theme::Dark) => [96, 96, 102, 255],
        }
    }
}

/// `share` of a colour over another.
pub(super) fn mixed(colour: Colour, under: Colour, share: f64) -> Colour {
    let mix = |i: usize| {
        (f64::from(under[i]) + share * (f64::from(colour[i]) - f64::from(under[i]))).round() as u8
    };
    [mix(0), mix(1), mix(2), 255]
}

/// Black or white, whichever is read better on `colour`: by relative luminance (WCAG 2).
pub(super) fn readable_on(colour: Colour) -> Colour {
    let linear = |i: usize| (f64::from(colour[i]) / 255.0).powf(2.2);
    let luminance = 0.2126 * linear(0) + 0.7152 * linear(1) + 0.0722 * linear(2);
    if luminance > 0.18 { [0, 0, 0, 255] } else { [255, 255, 255, 255] }
}
