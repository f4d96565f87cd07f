// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of what is tried again, with a request that no queue has.

use kernel::prelude::*;

#[kunit_tests(hiops_retry)]
mod retry_suite {
    use crate::blk::batch::is_worth_a_try;
    use crate::blk::request::{DiskStats, Format, HctxData, Pdu, Rq, Toggles};
    use core::ptr::{null, NonNull};
    use hal::{CmdError, Failure, RetryHint};
    use kernel::alloc::flags::{GFP_KERNEL, __GFP_ZERO};
    use kernel::bindings;
    use kernel::prelude::*;
    use kernel::sync::Arc;

    /// A request with what hiops has behind it.
    #[repr(C)]
    struct Whole {
        rq: bindings::request,
        pdu: Pdu<()>,
    }

    /// The request, and what it points to.
    struct Rig {
        whole: KBox<Whole>,
        queue: KBox<bindings::request_queue>,
        _hctx: KBox<bindings::blk_mq_hw_ctx>,
        _data: KBox<HctxData>,
    }

    /// # Safety
    /// Zeroes are a `T`.
    unsafe fn zeroed<T>() -> Result<KBox<T>> {
        let place = KBox::<T>::new_uninit(GFP_KERNEL | __GFP_ZERO)?;
        // SAFETY: zeroed, by the flag; that is a `T` by the caller's promise.
        Ok(unsafe { place.assume_init() })
    }

    fn rig(max_retries: u8) -> Result<Rig> {
        let data = HctxData {
            queue: null(),
            queue_ref: null(),
            switches: Toggles::new(0, 0),
            unit: 1,
            format: Format::new(&crate::kunit::unit::unit()),
            max_retries,
            stats: Arc::new(DiskStats::new().map_err(|_| ENOMEM)?, GFP_KERNEL)?,
        };
        let data = KBox::new(data, GFP_KERNEL)?;
        // SAFETY: structures of C, and a PDU that blk-mq zeroes as well.
        let (mut hctx, mut queue, mut whole) = unsafe {
            (
                zeroed::<bindings::blk_mq_hw_ctx>()?,
                zeroed()?,
                zeroed::<Whole>()?,
            )
        };
        hctx.driver_data = core::ptr::from_ref(&*data).cast_mut().cast();
        whole.rq.mq_hctx = &mut *hctx;
        whole.rq.q = &mut *queue;
        Ok(Rig {
            whole,
            queue,
            _hctx: hctx,
            _data: data,
        })
    }

    impl Rig {
        /// Whether it is tried again after a failure of that kind. If it is, it comes again.
        fn fails(&mut self, again: RetryHint) -> bool {
            let error = CmdError::Io;
            let rq = NonNull::from(&mut self.whole.rq);
            // SAFETY: the request has what a handle needs: PDU, hctx, queue. The handle is not
            // kept.
            let rq = unsafe { Rq::from_raw(rq) };
            let worth = is_worth_a_try(
                &rq,
                Failure {
                    error,
                    retry: again,
                },
            );
            if worth {
                rq.set_again(true);
                // What a time-out that goes on beside this may make of blk-mq's own flags.
                self.whole.rq.rq_flags = 0;
                assert!(rq.take_again());
            }
            worth
        }

        /// It is a new one.
        fn comes(&mut self) {
            // SAFETY: as above.
            let rq = unsafe { Rq::from_raw(NonNull::from(&mut self.whole.rq)) };
            assert!(!rq.take_again());
        }
    }

    #[test]
    fn five_times_and_no_more() {
        for most in [0, 1, 5, u8::MAX] {
            let rig = rig(most);
            assert!(rig.is_ok());
            if let Ok(mut rig) = rig {
                assert!((0..most).all(|_| rig.fails(RetryHint::Now)));
                assert!(!rig.fails(RetryHint::Now));
                assert!(rig.fails(RetryHint::NotIssued));
                assert!(!rig.fails(RetryHint::After(1)));
            }
        }
    }

    #[test]
    fn a_new_request_begins_anew() {
        if let Ok(mut rig) = rig(2) {
            // What the one before it has left behind.
            rig.whole.pdu.head.own.tries.set(2);
            rig.comes();
            assert!(rig.fails(RetryHint::Now) && rig.fails(RetryHint::After(7)));
            assert_eq!(rig.whole.pdu.head.own.delay_ms.get(), 700);
            assert_eq!(rig.whole.pdu.head.own.tries.get(), 2);
            assert!(!rig.fails(RetryHint::Now));
        }
    }

    #[test]
    fn who_wants_to_know_at_once_is_told() {
        let flags = [
            bindings::req_flag_bits___REQ_FAILFAST_DEV,
            bindings::req_flag_bits___REQ_FAILFAST_TRANSPORT,
            bindings::req_flag_bits___REQ_FAILFAST_DRIVER,
        ];
        for flag in flags {
            if let Ok(mut rig) = rig(5) {
                assert!(rig.fails(RetryHint::Now));
                rig.whole.rq.cmd_flags |= 1u32.wrapping_shl(flag);
                assert!(!rig.fails(RetryHint::Now));
                assert!(rig.fails(RetryHint::NotIssued));
            }
        }
    }

    #[test]
    fn nothing_is_tried_again_of_a_queue_that_goes() {
        if let Ok(mut rig) = rig(5) {
            assert!(rig.fails(RetryHint::Now));
            rig.queue.queue_flags |= 1 << bindings::QUEUE_FLAG_DYING;
            assert!(!rig.fails(RetryHint::Now));
        }
    }

    #[test]
    fn what_is_final_is_final() {
        if let Ok(mut rig) = rig(5) {
            assert!(!rig.fails(RetryHint::Never));
        }
    }
}
