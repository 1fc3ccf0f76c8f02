// SPDX-License-Identifier: Apache-2.0
#include "launcher/picture/picture.h"

#include <cmath>
#include <cstdio>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr double kColumnOfSize = 0.61;  // monospaced fonts have 0.6, some a little more
constexpr std::size_t kMostTextBytes = 4000;
constexpr int kColumnsOfEllipsis = 1;

std::size_t length_of(unsigned char first) {
  return first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

std::string attribute(const char* name, const std::string& value) {
  return value.empty() ? "" : std::string(" ") + name + "=\"" + escaped(value) + "\"";
}

std::string number(int value) { return std::to_string(value); }

std::string title_element(const std::string& title) {
  return title.empty() ? "" : "<title>" + escaped(title) + "</title>";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  const std::string shown = printable(text, kMostTextBytes);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    // U+FFFE and U+FFFF are UTF-8 and no XML.
    if (shown.compare(i, 2, "\xef\xbf") == 0 && i + 2 < shown.size() &&
        static_cast<unsigned char>(shown[i + 2]) >= 0xbe) {
      result += "\xef\xbf\xbd";
      i += 2;
      continue;
    }
    switch (shown[i]) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += shown[i];
    }
  }
  return result;
}

std::string cut_to(const std::string& text, int columns) {
  const std::string shown = printable(text, kMostTextBytes);
  int used = 0;
  std::size_t fits = 0;  // bytes, with an ellipsis behind
  for (std::size_t i = 0; i < shown.size();) {
    const std::size_t length = length_of(static_cast<unsigned char>(shown[i]));
    used += length == 1 ? 1 : 2;
    i += length;
    if (used + kColumnsOfEllipsis <= columns) fits = i;
    if (used > columns) return columns < 1 ? "" : shown.substr(0, fits) + "\u2026";
  }
  return shown;
}

int columns_of(const std::string& text) {
  int columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = length_of(static_cast<unsigned char>(text[i]));
    columns += length == 1 ? 1 : 2;
    i += length;
  }
  return columns;
}

int columns_in(int width, int size) { return static_cast<int>(width / (kColumnOfSize * size)); }

int width_of(int columns, int size) {
  return static_cast<int>(std::ceil(columns * kColumnOfSize * size));
}

void Picture::open(const std::string& classes, const std::string& title) {
  body_ += "<g" + attribute("class", classes) + ">" + title_element(title);
}

void Picture::close() { body_ += "</g>\n"; }

void Picture::rect(const Box& box, const std::string& classes, const std::string& fill) {
  body_ += "<rect x=\"" + number(box.x) + "\" y=\"" + number(box.y) + "\" width=\"" +
           number(box.width) + "\" height=\"" + number(box.height) + "\"" +
           attribute("class", classes) + attribute("fill", fill) + "/>";
}

void Picture::path(const std::string& data, const std::string& classes, const std::string& fill,
                   const std::string& title) {
  body_ += "<path d=\"" + data + "\"" + attribute("class", classes) + attribute("fill", fill) +
           ">" + title_element(title) + "</path>";
}

void Picture::line(const std::string& data, const std::string& classes, double width,
                   const std::string& colour, const std::string& title) {
  char words[32];
  std::snprintf(words, sizeof words, "%.1f", width);
  body_ += "<path d=\"" + data + "\"" + attribute("class", classes) +
           " fill=\"none\" stroke-width=\"" + words + "\"" + attribute("stroke", colour) + ">" +
           title_element(title) + "</path>";
}

void Picture::text(int x, int y, int width, const std::string& words, const TextStyle& style) {
  add_text(" x=\"" + number(x) + "\" y=\"" + number(y) + "\"", width, words, style);
}

void Picture::upright_text(int x, int y, int width, const std::string& words,
                           const TextStyle& style) {
  add_text(" transform=\"translate(" + number(x) + " " + number(y) + ") rotate(-90)\"", width,
           words, style);
}

void Picture::add_text(const std::string& place, int width, const std::string& words,
                       const TextStyle& style) {
  const char* const anchor = style.anchor == Anchor::kMiddle ? "middle"
                             : style.anchor == Anchor::kEnd  ? "end"
                                                             : "";
  const std::string shown = cut_to(words, columns_in(width, style.size));
  if (shown.empty()) return;
  body_ += "<text" + place + " font-size=\"" + number(style.size) + "\"" +
           attribute("class", style.classes) + attribute("text-anchor", anchor) + ">" +
           escaped(shown) + "</text>";
}

std::string Picture::finished(int width, int height, const std::string& name,
                              const std::string& style) const {
  const std::string w = number(width), h = number(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topology\" role=\"img\" width=\"" + w +
         "\" height=\"" + h + "\" viewBox=\"0 0 " + w + " " + h + "\">\n<title>" + escaped(name) +
         "</title>\n<style>\n" + style + "</style>\n<rect class=\"paper\" width=\"" + w +
         "\" height=\"" + h + "\"/>\n" + body_ + "</svg>\n";
}

}  // namespace hv::launcher
