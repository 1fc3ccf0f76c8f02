// An SVG picture in the making: boxes, texts and lines, in pixels. What it is given as text may be
// anything: it is escaped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace hv::launcher {

// For content and attributes of XML and HTML. What XML has no place for is shown by \xNN or U+FFFD.
std::string escaped(std::string_view text);

// At most so many columns, the last an ellipsis where something is cut off. What is no ASCII counts
// as two.
std::string cut_to(const std::string& text, int columns);

// As cut_to() counts.
int columns_of(const std::string& text);

struct Box {
  int x = 0, y = 0, width = 0, height = 0;
};

enum class Anchor { kStart, kMiddle, kEnd };

// A text's place and form. All are of one monospaced font, so that their width is known.
struct TextStyle {
  int size = 11;
  const char* classes = "";
  Anchor anchor = Anchor::kStart;
};
int columns_in(int width, int size);
int width_of(int columns, int size);

class Picture {
 public:
  // Things that belong together; title: told where the mouse rests on them. classes are ours.
  void open(const std::string& classes, const std::string& title = "");
  void close();
  // fill: of its own; empty: as its classes say.
  void rect(const Box& box, const std::string& classes, const std::string& fill = "");
  void path(const std::string& data, const std::string& classes, const std::string& fill = "",
            const std::string& title = "");
  void line(const std::string& data, const std::string& classes, double width,
            const std::string& colour, const std::string& title);
  // Cut to width.
  void text(int x, int y, int width, const std::string& words, const TextStyle& style = {});
  // Upwards from there.
  void upright_text(int x, int y, int width, const std::string& words, const TextStyle& style = {});

  // All of it in an <svg> of that size; style: CSS, ours.
  std::string finished(int width, int height, const std::string& name,
                       const std::string& style) const;

 private:
  void add_text(const std::string& place, int width, const std::string& words,
                const TextStyle& style);
  std::string body_;
};

}  // namespace hv::launcher
