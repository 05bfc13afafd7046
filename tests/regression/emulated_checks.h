// Checks that run on the emulated GPU, and print a line each.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#undef printf

namespace {

using u16 = unsigned short;
using u32 = unsigned;
using Body = std::function<void()>;

int failures = 0;

void check(const char* name, bool is_right) {
  failures += !is_right;
  std::printf("%s %s\n", is_right ? "right" : "WRONG", name);
}

// What ends the block, or nothing; in both orders of threads.
std::string run(int threads, const Body& body) {
  std::string message;
  for (const bool reverse : {false, true}) {
    try {
      simt::Block(threads, body, reverse).run();
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
  }
  return message;
}

// Whether `body`, by thread, is true for all that return from it, in both orders.
bool holds(int threads, const std::function<bool(int)>& body) {
  bool all = true;
  return run(threads, [&] { all &= body(int(threadIdx.x)); }).empty() && all;
}

bool ends_with(int threads, const char* why, const Body& body) {
  return run(threads, body).find(why) != std::string::npos;
}

}  // namespace
