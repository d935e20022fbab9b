// Text of users (paths, names, fields of files) where only some bytes may stand: in TOML and JSON,
// and on a terminal, which obeys control characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace espalier {

/// Is `text` UTF-8 by RFC 3629: shortest forms, no surrogates, nothing beyond U+10FFFF?
bool is_utf8(std::string_view text);

/// `text` in quotes, as a string of TOML and of JSON alike. Control characters (U+0000 to U+001F,
/// U+007F to U+009F) are escaped, so a terminal may show the result too; a byte that is no part of
/// a UTF-8 character becomes U+FFFD, as neither format can hold it. Both read every other text back
/// as it was.
std::string quoted(const std::string& text);

/// `text` for a terminal: control characters, but for the newlines and tabs of tables, and bytes
/// that are no part of a UTF-8 character stand as \xNN.
std::string printable(std::string_view text);

/// The same on one line (newlines and tabs as \xNN too), and without its middle where it is longer
/// than `most` bytes: "begin ... (50000000 bytes) ... end".
std::string excerpt(std::string_view text, std::size_t most = 2000);

}  // namespace espalier
