//! Colours: those of Okabe and Ito (Color Universal Design, 2008), which are told apart with any eyes, on light and on dark.

use super::figure::Tone;

/// Red, green, blue.
pub(super) type Colour = [u8; 3];

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

/// Colours for one ground.
struct Palette {
    background: Colour,
    text: Colour,
    /// Axes and ticks.
    line: Colour,
    /// Lines that only guide the eye.
    grid: Colour,
    faint: Colour,
    open: Colour,
    /// Its number among the hues.
    bad: usize,
    /// Beyond these, shapes of marks tell series apart.
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
    hues: ON_LIGHT,
};

static DARK: Palette = Palette {
    background: [24, 24, 27],
    text: [230, 230, 230],
    line: [150, 150, 150],
    grid: [52, 52, 56],
    faint: [74, 74, 80],
    open: [96, 96, 102],
    bad: 5,
    hues: ON_DARK,
};

impl Theme {
    fn palette(self) -> &'static Palette {
        match self {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
        }
    }

    pub(super) fn background(self) -> Colour {
        self.palette().background
    }

    pub(super) fn text(self) -> Colour {
        self.palette().text
    }

    pub(super) fn line(self) -> Colour {
        self.palette().line
    }

    pub(super) fn grid(self) -> Colour {
        self.palette().grid
    }

    pub(super) fn colour(self, tone: Tone) -> Colour {
        let palette = self.palette();
        match tone {
            Tone::Hue(number) => palette.hues[number % palette.hues.len()],
            Tone::Faint => palette.faint,
            Tone::Good => palette.hues[2],
            Tone::Bad => palette.hues[palette.bad],
            Tone::Open => palette.open,
        }
    }
}

/// `share` of a colour over another.
pub(super) fn mixed(colour: Colour, under: Colour, share: f64) -> Colour {
    std::array::from_fn(|i| {
        let (over, under) = (f64::from(colour[i]), f64::from(under[i]));
        (under + share * (over - under)).round() as u8
    })
}

/// Black or white, whichever is read better on `colour`: by relative luminance (WCAG 2).
pub(super) fn readable_on(colour: Colour) -> Colour {
    let [red, green, blue] = colour.map(|part| (f64::from(part) / 255.0).powf(2.2));
    let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    if luminance > 0.18 { [0; 3] } else { [255; 3] }
}
