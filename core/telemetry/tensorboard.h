// TensorBoard event files as bytes: events in TFRecord framing, a masked CRC-32C over the length
// and over the data of each. Pure encoding; the metrics writer owns the file.
#pragma once

#include <string>

#include "core/telemetry/event.pb.h"

namespace ddp {

/// Appends one record: u64 length, u32 masked checksum of the length, data, u32 masked checksum of
/// the data, all little-endian. No allocation once `out` has the capacity.
void append_event(std::string& out, const tensorboard::Event& event);

/// The record that opens every event file and says its version. `wall_time` is in seconds since
/// 1970.
std::string event_file_opening(double wall_time);

}  // namespace ddp
