// SPDX-License-Identifier: GPL-2.0
//! KUnit suite of the platform: tables, time, and DMA memory that a device has to be there for.

use crate::platform::KernelPlatform;
use kernel::prelude::*;

#[kunit_tests(hiops_platform)]
mod platform_suite {
    use super::*;
    use hal::Platform;

    #[test]
    fn tables_are_made_in_order() {
        let platform = KernelPlatform::without_device();
        for len in [0usize, 1, 4096, 100_000] {
            let table = platform.table(len, |at| at);
            assert!(table.is_ok());
            if let Ok(table) = table {
                assert_eq!(table.len(), len);
                assert!(table.iter().enumerate().all(|(at, value)| at == *value));
            }
        }
    }

    #[test]
    fn without_a_device_there_is_no_dma() {
        let dma = KernelPlatform::without_device().dma(4096);
        assert!(dma.err() == Some(hal::Error::Unsupported));
    }

    #[test]
    fn time_passes() {
        let platform = KernelPlatform::without_device();
        let before = platform.now_us();
        platform.sleep_us(1000);
        assert!(platform.now_us().wrapping_sub(before) >= 1000);
    }
}
