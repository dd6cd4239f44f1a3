//! What a part of a connection (an interval, a finding) is a part of.

use super::{Cell, Column, Kind, Place, Record, SCHEMA_VERSION};
use crate::connection::Connection;

/// What rows of intervals and findings begin with.
pub enum Wholes {}

/// The connection that a part belongs to.
#[derive(Debug, Clone, Copy)]
pub struct WholeRow<'r> {
    /// The capture's name.
    pub file: &'r str,
    /// The connection.
    pub connection: &'r Connection,
}

impl Record for Wholes {
    type Row<'r> = WholeRow<'r>;
}

type W = Column<Wholes>;

/// The first columns of rows of intervals and findings: which connection they are of.
pub static WHOLES: &[W] = &[
    W::new("schema", Kind::Number, "", "version of this table", |_| Cell::number(SCHEMA_VERSION))
        .at(Place::Rows),
    W::new("file", Kind::Text, "", "the capture's name, as given", |row| Cell::text(row.file))
        .at(Place::Rows),
    W::new("connection", Kind::Number, "", "number of the connection, from 0", |row| {
        Cell::number(row.connection.id)
    })
    .at(Place::Rows),
    W::new("connection_start_ns", Kind::Number, "", "its first packet, since 1970", |row| {
        Cell::number(row.connection.start.as_nanos())
    })
    .at(Place::Rows),
    W::new("client", Kind::Text, "", "address and port of the client", |row| {
        Cell::text(row.connection.client.to_string())
    })
    .at(Place::Rows),
    W::new("server", Kind::Text, "", "address and port of the server", |row| {
        Cell::text(row.connection.server.to_string())
    })
    .at(Place::Rows),
];
