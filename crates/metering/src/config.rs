//! The settings of counts and of the log of calls.

portolan_config::config! {
    /// Metering
    pub struct MeteringConfig {
        /// Days for which the log of calls is kept.
        call_log_days: u32 = 30, in 1..=365;
        /// Rows of the log of calls that one node writes for one workspace in a day. Beyond, it
        /// keeps errors, slow calls and a sample of the others, each with its weight. Counts stay
        /// exact.
        call_log_rows_per_day: u32 = 1_000_000, in 10_000..=1_000_000_000;
        /// Hours for which counts by minute are kept.
        usage_minute_hours: u32 = 48, in 25..=720;
        /// Days for which counts by hour are kept.
        usage_hour_days: u32 = 90, in 2..=800;
        /// Months for which counts by day are kept.
        usage_day_months: u32 = 25, in 1..=240;
    }
}
