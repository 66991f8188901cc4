//! What a frame takes up on the link: its bytes, what the link adds, a least size, cells.
//!
//! `crates/engine/bpf/framing.h` is the same in the kernel, and held to this by
//! `kernel-guest framing`.

use serde::{Deserialize, Serialize};

/// What a link makes of the frames that it is handed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framing {
    /// Bytes that it adds to each frame as `tc` counts it (or, if negative, that do not count).
    #[serde(rename = "overhead_bytes")]
    pub overhead: i32,
    /// What a frame counts at least, overhead included: `mpu` of `tc`.
    #[serde(rename = "mpu_bytes")]
    pub mpu: u32,
    /// Cells that the result is cut into.
    pub cells: Cells,
}

/// What frames are cut into on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cells {
    /// Nothing.
    #[default]
    None,
    /// ATM: 53 bytes for each 48 bytes or part of them.
    Atm,
    /// PTM (VDSL2): a byte for each 64 bytes or part of them.
    Ptm,
}

/// What a frame is on the link: some segments of one size, and a last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// How many; at least 1.
    pub count: u16,
    /// Bytes of each but the last one.
    pub each: u32,
    /// Bytes of the last one.
    pub last: u32,
}

impl From<u32> for Segments {
    /// A frame that is sent as it is.
    fn from(size: u32) -> Self {
        Self { count: 1, each: size, last: size }
    }
}

impl Framing {
    /// A frame counts with the bytes that it has.
    pub const NONE: Self = Self { overhead: 0, mpu: 0, cells: Cells::None };

    /// A number of bytes for each frame, and nothing else.
    #[must_use]
    pub const fn bytes(overhead: i32) -> Self {
        Self { overhead, ..Self::NONE }
    }

    /// Bytes that a frame takes up on the link; at least one, since no frame is free.
    #[must_use]
    pub fn on_link(&self, frame: u32) -> u32 {
        let least = self.mpu.max(1);
        let bytes = frame.saturating_add_signed(self.overhead).max(least);
        match self.cells {
            Cells::None => bytes,
            Cells::Atm => bytes.div_ceil(48).saturating_mul(53),
            Cells::Ptm => bytes.saturating_add(bytes.div_ceil(64)),
        }
    }

    /// Bytes that all segments of a frame take up on the link.
    #[must_use]
    pub fn segments_on_link(&self, Segments { count, each, last }: Segments) -> u32 {
        let others = u32::from(count.max(1) - 1);
        self.on_link(each).saturating_mul(others).saturating_add(self.on_link(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framing(overhead: i32, mpu: u32, cells: Cells) -> Framing {
        Framing { overhead, mpu, cells }
    }

    #[test]
    fn an_acknowledgement_on_adsl_takes_two_cells() {
        // 40 bytes of TCP/IP, PPPoE over LLC/SNAP: 80 bytes, 2 cells.
        let adsl = framing(40 - 14, 0, Cells::Atm);
        assert_eq!(adsl.on_link(40 + 14), 106);
        // 1500 bytes: 1540, 33 cells.
        assert_eq!(adsl.on_link(1514), 33 * 53);
        // A byte more or less at the edge of a cell.
        assert_eq!(framing(0, 0, Cells::Atm).on_link(48), 53);
        assert_eq!(framing(0, 0, Cells::Atm).on_link(49), 106);
        // A super-packet takes what its segments take one by one.
        let segments = Segments { count: 3, each: 1514, last: 54 };
        assert_eq!(adsl.segments_on_link(segments), 2 * 33 * 53 + 106);
    }

    #[test]
    fn overhead_counts_and_has_a_floor() {
        assert_eq!(framing(24, 0, Cells::None).on_link(60), 84);
        assert_eq!(framing(-14, 0, Cells::None).on_link(60), 46);
        assert_eq!(framing(-14, 64, Cells::None).on_link(60), 64);
        assert_eq!(framing(-14, 64, Cells::Ptm).on_link(60), 65);
        assert_eq!(framing(-100, 0, Cells::None).on_link(60), 1, "no frame is free");
        assert_eq!(framing(i32::MIN, 0, Cells::None).on_link(60), 1);
        assert_eq!(framing(i32::MAX, 0, Cells::Atm).on_link(u32::MAX), u32::MAX);
    }

    proptest! {
        /// Whatever is claimed of it: no panic, and no less than a byte a segment.
        #[test]
        fn any_shape_has_a_size(
            count: u16, each: u32, last: u32, overhead: i32, mpu: u32,
            cells in prop::sample::select(vec![Cells::None, Cells::Atm, Cells::Ptm]),
        ) {
            let bytes = framing(overhead, mpu, cells).segments_on_link(Segments { count, each, last });
            prop_assert!(bytes >= u32::from(count));
        }

        /// More bytes never take less, and cells add between nothing and one cell's worth.
        #[test]
        fn a_larger_frame_takes_no_less(
            frame in 0u32..70_000, overhead in -64i32..1025, mpu in 0u32..1025,
            cells in prop::sample::select(vec![Cells::None, Cells::Atm, Cells::Ptm]),
        ) {
            let framing = framing(overhead, mpu, cells);
            prop_assert!(framing.on_link(frame) <= framing.on_link(frame + 1));
            let bare = Framing { cells: Cells::None, ..framing }.on_link(frame);
            let most = match cells {
                Cells::None => bare,
                Cells::Atm => bare.div_ceil(48) * 53,
                Cells::Ptm => bare + bare / 64 + 1,
            };
            prop_assert!((bare..=most).contains(&framing.on_link(frame)));
        }
    }
}
