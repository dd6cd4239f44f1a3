//! The relay's protocol, two ends in virtual time: any order of events gives the whole stream or an
//! error.

mod interleavings;
