// How the classes of a data set are called in tables, reports and files: by their names where these
// are known, which is for all of them or for none.
#pragma once

#include <string>
#include <vector>

namespace ddp {

/// The name of a class; empty when there is none, and for labels below 0.
std::string class_name(const std::vector<std::string>& names, int label);
/// The name of a class, or its number when there is none.
std::string class_label(const std::vector<std::string>& names, int label);

}  // namespace ddp
