// SPDX-License-Identifier: GPL-2.0
//! A request's owner and a view of it, as types. What they can do is in [`super`] and in
//! `owned.rs`, and takes what is made of these: the disk's lane, and the way to its queue.

use core::marker::PhantomData;
use core::ptr::NonNull;
use kernel::bindings;

/// A request that blk-mq handed to hiops, to be ended exactly once: by what takes it by value.
///
/// # Invariants
/// `rq` is a request of a queue whose tag set has room for [`Pdu<M>`](super::Pdu) behind each,
/// given to `queue_rq(s)` and not ended since; this is the only owner of it. Its hardware context's
/// `driver_data` is a [`Lane`](crate::blk::lane::Lane) that outlives it.
#[repr(transparent)]
pub struct Rq {
    pub(super) rq: NonNull<bindings::request>,
}

// SAFETY: a request belongs to no thread; its one owner may be any.
unsafe impl Send for Rq {}

/// A request to look at, for who does not own it, or not for as long: it can't be ended.
///
/// # Invariants
/// `rq` is as that of an [`Rq`], or is over, but stays a request of that tag set for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct RqRef<'a> {
    pub(super) rq: NonNull<bindings::request>,
    pub(super) alive: PhantomData<&'a bindings::request>,
}
