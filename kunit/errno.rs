// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of errors at the kernel's edge.

use crate::blk::request::status;
use crate::errno::to_errno;
use hal::CmdError;
use kernel::prelude::*;

#[kunit_tests(hiops_errno)]
mod errno_suite {
    use super::*;

    #[test]
    fn no_failure_reads_as_success() {
        assert_eq!(status(Ok(())), 0);
        for error in [
            CmdError::Medium,
            CmdError::Range,
            CmdError::Protection,
            CmdError::NotReady,
            CmdError::NoSpace,
            CmdError::Reserved,
            CmdError::Unsupported,
            CmdError::Invalid,
            CmdError::Timeout,
            CmdError::Aborted,
            CmdError::Gone,
            CmdError::Path,
            CmdError::Fault,
            CmdError::Io,
        ] {
            assert!(status(Err(error.permanent())) != 0);
            assert!(status(Err(error.permanent())) == status(Err(error.retryable())));
        }
    }

    #[test]
    fn kinds_survive_the_way_back() {
        for error in [
            hal::Error::NoMemory,
            hal::Error::Timeout,
            hal::Error::Gone,
            hal::Error::Invalid,
        ] {
            assert!(crate::errno::from_errno(to_errno(error)) == error);
        }
    }
}
