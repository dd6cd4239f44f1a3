//! What is made of a connection.

use fullpipe_flow::diagnosis::DiagnosedConnection;

/// What is made of a connection where it was analysed. It is numbered afterwards.
pub trait Explained: Send + 'static {
    /// The connection's number.
    fn number(&self) -> u64;
    /// Gives it the number that it has in the whole capture.
    fn renumber(&mut self, number: u64);
}

impl Explained for DiagnosedConnection {
    fn number(&self) -> u64 {
        self.connection.id
    }

    fn renumber(&mut self, number: u64) {
        DiagnosedConnection::renumber(self, number);
    }
}
