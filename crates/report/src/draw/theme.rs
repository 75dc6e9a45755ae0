//! Colours of Okabe and Ito (Color Universal Design, 2008), which people with any colour vision can distinguish, for light and dark backgrounds.

use super::figure::Tone;

/// Red, green and blue, each from 0 to 255.
pub(super) type Colour = [u8; 3];

/// The theme of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Black on white.
    Light,
    /// White on near-black.
    Dark,
}

/// The colours of a theme.
#[derive(Debug)]
pub(super) struct Palette {
    pub(super) background: Colour,
    pub(super) text: Colour,
    /// Colour of axes and ticks.
    pub(super) line: Colour,
    /// Colour of guide lines.
    pub(super) grid: Colour,
    faint: Colour,
    open: Colour,
    /// Index of [`Tone::Bad`] in the hues.
    bad: usize,
    /// Colours of series; more series differ in the shapes of marks.
    hues: [Colour; 7],
}

static LIGHT: Palette = Palette {
    background: [255, 255, 255],
    text: [26, 26, 26],
    line: [90, 90, 90],
    grid: [228, 228, 228],
    faint: [214, 214, 214],
    open: [200, 200, 200],
    bad: 1,
    // Blue, vermilion, bluish green, reddish purple, orange, sky blue, and grey for a seventh; no yellow, which is hard to see on white.
    hues: [
        [0, 114, 178],
        [213, 94, 0],
        [0, 158, 115],
        [204, 121, 167],
        [230, 159, 0],
        [86, 180, 233],
        [110, 110, 110],
    ],
};

static DARK: Palette = Palette {
    background: [24, 24, 27],
    text: [230, 230, 230],
    line: [150, 150, 150],
    grid: [52, 52, 56],
    faint: [74, 74, 80],
    open: [96, 96, 102],
    bad: 5,
    // The same colours, but yellow instead of blue, which is hard to see on black.
    hues: [
        [86, 180, 233],
        [230, 159, 0],
        [0, 178, 130],
        [224, 150, 190],
        [240, 228, 66],
        [233, 110, 30],
        [160, 160, 160],
    ],
};

impl Theme {
    pub(super) fn palette(self) -> &'static Palette {
        match self {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
        }
    }
}

impl Palette {
    pub(super) fn colour(&self, tone: Tone) -> Colour {
        match tone {
            Tone::Hue(number) => self.hues[number % self.hues.len()],
            Tone::Faint => self.faint,
            Tone::Good => self.hues[2],
            Tone::Bad => self.hues[self.bad],
            Tone::Open => self.open,
        }
    }
}

/// A colour drawn over another with opacity `share`.
pub(super) fn blend(colour: Colour, under: Colour, share: f64) -> Colour {
    std::array::from_fn(|i| {
        let top = f64::from(colour[i]);
        let bottom = f64::from(under[i]);
        (bottom + share * (top - bottom)).round() as u8
    })
}
