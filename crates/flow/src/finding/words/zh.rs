//! What is found, in Chinese. Each function has the English one's name and arguments, and each
//! sentence is written anew, in the field's own terms (接收窗口, 拥塞窗口, 乱序, 重传).

pub(super) mod limit;
pub(super) mod machine;
pub(super) mod packets;
pub(super) mod remedy;
pub(super) mod socket;
