"""No class is larger than a reader holds in mind; the list of exceptions only shrinks. SPDX-License-Identifier: Apache-2.0"""

import pytest

import classes
import tree

TEXTS = {path: tree.read(path) for path in tree.files() if path.endswith(tree.CXX)}


def test_no_class_is_too_large():
    assert list(classes.errors(classes.shapes(TEXTS), classes.listed(tree.read(classes.LIST)))) == []


def counts(body):
    shape = classes.shapes_of_text("x.h", "namespace hv {\nclass A : public B<int, C{}> {\n" + body + "\n};\n}\n")[0]
    assert shape.name == "A"
    return shape.members, shape.methods


BODIES = [
    ("", 0, 0),
    ("public: int a; private: int b_ = 3; const std::map<int, std::pair<int, int>> c_{{1, {2, 3}}};", 3, 0),
    ("int a, b = f(1, 2), *c, d[2], e{1};", 5, 0),
    ("int a = b < c, d = e > f;", 2, 0),
    ("std::map<int, int> a = std::map<int, int>(), b = f<int, 2>{};", 2, 0),
    ("unsigned a : 3, b : 2; unsigned : 3; unsigned c : 1 = 0; std::uint8_t : 4;", 3, 0),
    ("std::function<void(int)> on_end; std::function<int()> f = [this](int a) { struct X { int b, c; }; return a; };", 2, 0),
    ("void (*pointer)(int) = nullptr; int (A::*member)(char); int (*table[3])(int); const char* (*words)();", 4, 0),
    ("void (*f(int))(char);", 0, 1),
    ("decltype(f()) a; alignas(64) std::atomic<int> b; [[maybe_unused]] int c; mutable std::mutex d;", 4, 0),
    ("static int a; static constexpr int b = 3, c = 4; inline static std::string d{};", 0, 0),
    ("struct stat info {}; struct tm* time; enum Form form; unsigned long long n; auto* p = &q;", 5, 0),
    ("struct B; class C; union D; enum class E; enum class F : std::uint8_t; friend class G; friend struct hv::H;", 0, 0),
    ("using B = int; typedef int (*C)(int a, int b); static_assert(sizeof(int) == 4, \"int a;\");", 0, 0),
    ("enum class State { kA, kB = 2 }; enum { kC } c; enum Old : int { kD };", 1, 0),
    ("struct B { int a, b; void f(); }; struct C { int c; } d, *e; class D final : public B { void g() {} };", 2, 0),
    ("union { int a; struct { int b; int c; }; }; union { int d; float e; } f;", 4, 0),
    ("A(); explicit A(int a) : B{a}, a_(std::move(a)), b_<int>{} {} ~A(); virtual ~A() = default; A(const A&) = delete;", 0, 0),
    ("A(int a) noexcept : c(a) { if (a) { g(); } } int c;", 1, 0),
    ("template <class... T> A(T... t) : T(t)... {} int c;", 1, 0),
    ("bool operator==(const A&) const = default; A& operator=(A&&) noexcept; operator bool() const { return a; }", 0, 0),
    ("void operator()(int a) const; int operator()() const { return 1; } A operator<<(int); bool operator<(const A& a) const;", 0, 0),
    ("int operator[](int) const; explicit operator std::vector<int>() const; int a;", 1, 0),
    ("friend bool operator<(A a, A b) { return a.b < b.b; } friend void f(A); friend int g(A a) { return 1; } int b;", 1, 0),
    ("void f(); int g(int a, std::map<int, int> b = {}) const; virtual void h() = 0; static A make(); std::string name();", 0, 5),
    ("void f() = delete; bool g() const = default; void h() const&; void i() &&; void j() noexcept(noexcept(k()));", 0, 3),
    ("auto f() -> std::vector<int>; auto g() const -> decltype(a) { return a; } std::pair<int, int> h() { return {1, 2}; }", 0, 3),
    ("void f() { int a; struct L { int b; }; auto g = [] { return 1; }; } void g() override final {}; bool h() const noexcept;", 0, 3),
    ("template <class T> void f(T t); template <class T, int N = 3> static T g() { return {}; } template <class T> using B = C<T>;", 0, 2),
    ("template <class T> requires C<T> && (sizeof(T) > 1) void f(T t); template <class T> static constexpr bool b = true;", 0, 1),
    ("template <class T> struct B { T a; }; template <class T> friend class C; template <class T> friend void g(T t) {} int d;", 1, 0),
    ("const std::string& name() const { return name_; } unsigned long f(void (*g)(int)); void* h(int (*)[3], A& (A::*)());", 0, 3),
    ("int f(), g(int a), b;", 1, 2),
    ("int final() const; void override(); int final_ = 0;", 1, 2),
    ("[[nodiscard]] bool is_it() const; [[noreturn]] void fail(); hv::A::B f(); ::hv::A c; HV_NOT_COPIED(A);", 1, 3),
    ("#define B(x) int x; \\\n  int y;\nint a;  // int b;\n/* int c; */ const char* d = \"int e; {\";", 2, 0),
    ("char a = '{'; char b = '\\''; int c = 1'000;\n#if X\nint d;\n#else\nint e;\n#endif", 5, 0),
    ("struct Point { int x = 0, y = 0; } from{1, 2}, to = {3, 4};", 2, 0),
    ("std::array<std::byte, (2 > 1) ? 3 : 4> a; std::chrono::steady_clock::time_point b = f()->c.d<int>(); B<sizeof(int)>::C c;", 3, 0),
    ("__attribute__((aligned(8))) int a; int b [[maybe_unused]]; volatile int c; int *const d = nullptr, &e;", 5, 0),
]


@pytest.mark.parametrize("body, members, methods", BODIES)
def test_members_and_methods_are_counted(body, members, methods):
    assert counts(body) == (members, methods)
    assert counts(body + "\n int more; void more_of_it();") == (members + 1, methods + 1)


def test_nested_and_local_classes_count_on_their_own():
    text = """
    template <class T> struct Outer : std::vector<T> {
      enum class Kind { kA };
      struct [[nodiscard]] Inner final { int a, b; union { int c; int d; }; };
      void f() { struct Local { int a; void g(); } local; }
      Inner inner;
    };
    struct Outer::Other { void f(); };
    template <> struct Outer<int> { int a; };
    void f(struct stat s, class T* t) { struct stat there {}; }
    struct B make();
    template <class T, class U = struct V> class W;
    enum struct X { a };
    """
    assert [tuple(shape[1:]) for shape in classes.shapes_of_text("x.cc", text)] == [
        ("Outer", 1, 1), ("Outer::Inner", 4, 0), ("Outer::Local", 1, 1), ("Outer::Other", 0, 1), ("Outer", 1, 0)]


def found(members, methods, path="src/x.h"):
    body = "  int a;\n" * members + "  void f();\n" * methods
    return classes.shapes({path: f"class A {{\n{body}}};\n"})


def test_a_class_at_the_limits_is_green():
    assert list(classes.errors(found(15, 25), {})) == []
    assert found(16, 26, "tests/x.h") == []


@pytest.mark.parametrize("members, methods", [(16, 0), (0, 26)])
def test_a_class_above_a_limit_is_red(members, methods):
    assert list(classes.errors(found(members, methods), {})) == [
        f"src/x.h: A has {members} data members and {methods} methods, at most 15 and 25: give what belongs together a class of its own"]


LINES = [
    ((16, 30), "src/x.h", "src/x.h A 16 30", ""),
    ((17, 30), "src/x.h", "src/x.h A 16 30", "grown to 17 30"),
    ((16, 31), "src/x.h", "src/x.h A 16 30", "grown to 16 31"),
    ((16, 29), "src/x.h", "src/x.h A 16 30", "write 16 29"),
    ((15, 25), "src/x.h", "src/x.h A 16 30", "remove this line"),
    ((16, 30), "src/x.h", "# why\nsrc/x.h A 16 30\nsrc/x.h B 16 30", "no such class: remove this line"),
    ((16, 30), "launcher/agent/x.h", "launcher/agent/x.h A 16 30", "no exceptions in launcher/agent"),
]


@pytest.mark.parametrize("now, path, lines, error", LINES)
def test_an_exception_holds_what_it_says_and_no_more(now, path, lines, error):
    errors = list(classes.errors(found(*now, path), classes.listed(lines)))
    assert len(errors) == bool(error) and all(error in each for each in errors)


@pytest.mark.parametrize("folder", classes.STRICT)
def test_the_strict_directories_are_there(folder):
    assert any(path.startswith(folder) for path in TEXTS)
