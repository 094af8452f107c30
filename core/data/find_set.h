// From what --data says to the directory and format of a set of image files, and what is known of
// it by name. Looks at names only and reads no image; called before any file is opened.
#pragma once

#include <string>

#include "core/data/image_set.h"

namespace ddp {

/// `data` is the name of a set that is looked for in the folder of data sets (/usr/share/datasets,
/// or what the environment variable DDPTRAIN_DATA names), or a directory with idx or CIFAR files.
/// DataError when it is not there, with how to get it and the alternatives.
ImageSet find_set(const std::string& data);

}  // namespace ddp
