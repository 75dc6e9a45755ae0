//! Open files by number; a number is used again once it is free.

pub(super) struct Slots<T>(Vec<Option<T>>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots(Vec::new())
    }
}

impl<T> Slots<T> {
    pub(super) fn insert(&mut self, value: T) -> u64 {
        let free = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        if free == self.0.len() {
            self.0.push(None);
        }
        self.0[free] = Some(value);
        free as u64
    }

    pub(super) fn get(&self, number: u64) -> Option<&T> {
        self.0.get(number as usize)?.as_ref()
    }

    pub(super) fn take(&mut self, number: u64) -> Option<T> {
        self.0.get_mut(number as usize)?.take()
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.0.drain(..).flatten()
    }
}
