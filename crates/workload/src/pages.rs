//! Pages of a web: objects, which a browser comes to know of one after another.

use units::Nanos;

use crate::law::{CountLaw, SizeLaw, TimeLaw};
use crate::random::Random;

/// What pages are like.
#[derive(Clone, Copy, Debug)]
pub struct PageLaw<'a> {
    /// Objects of a page; 0 counts as 1.
    pub objects: &'a CountLaw,
    /// Bytes of an object.
    pub sizes: &'a SizeLaw,
    /// From one object to the next: when the browser comes to know of it.
    pub gap: &'a TimeLaw,
    /// From a complete page to the next.
    pub think: &'a TimeLaw,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The place of its server among all.
    pub server: usize,
    /// Its objects, at least one, in the order in which they are known.
    pub objects: Vec<Object>,
    /// From its end to the begin of the next page.
    pub think: Nanos,
}

/// An object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// When the browser knows of it, from the begin of the page on.
    pub known: Nanos,
    /// Its bytes.
    pub size_bytes: u64,
}

impl PageLaw<'_> {
    /// Draws a page from one of so many servers, always in the same order: the pages of a browser
    /// do not depend on how long they take.
    pub fn draw(&self, servers: usize, random: &mut Random) -> Page {
        let server = random.below(servers as u64) as usize;
        let count = self.objects.sample(random).max(1);
        let mut known = Nanos::ZERO;
        let mut objects = Vec::with_capacity(count as usize);
        for _ in 0..count {
            objects.push(Object { known, size_bytes: self.sizes.sample(random) });
            known += Nanos(self.gap.sample(random));
        }
        Page { server, objects, think: Nanos(self.think.sample(random)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_become_known_one_after_another() {
        let (objects, sizes) =
            ("fixed:count=3".parse().unwrap(), "fixed:size=2kb".parse().unwrap());
        let (gap, think) = ("fixed:time=5ms".parse().unwrap(), "fixed:time=1s".parse().unwrap());
        let law = PageLaw { objects: &objects, sizes: &sizes, gap: &gap, think: &think };
        let page = law.draw(4, &mut Random::new(1));
        let known: Vec<u64> = page.objects.iter().map(|object| object.known.0).collect();
        assert_eq!(known, [0, 5_000_000, 10_000_000]);
        assert!(page.objects.iter().all(|object| object.size_bytes == 2048));
        assert_eq!((page.think, page.server < 4), (Nanos::from_secs(1), true));
        let none = "fixed:count=0".parse().unwrap();
        assert_eq!(PageLaw { objects: &none, ..law }.draw(1, &mut Random::new(1)).objects.len(), 1);
    }
}
