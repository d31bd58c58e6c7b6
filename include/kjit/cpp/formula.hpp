/* kjit/cpp/formula.hpp: formulas of an application's users for kjit.hpp. Include kjit/kjit.hpp,
 * which includes this file. */
#ifndef KJIT_CPP_FORMULA_HPP
#define KJIT_CPP_FORMULA_HPP

#include <kjit/cpp/context.hpp>
#include <kjit/formula.h>

namespace kjit {

/* A column that formulas can use: a name, an element type and flags (KJIT_COLUMN_...). */
struct formula_column {
  std::string name;                    /* the name in formulas */
  kjit_type type;                      /* element type */
  std::uint32_t flags = 0;             /* KJIT_COLUMN_... combined with | */
  std::vector<std::string> texts = {}; /* the dictionary of a column with KJIT_COLUMN_TEXT */
};
/* Describes a column with elements of a C++ type. */
template <typename T> formula_column column(std::string name, std::uint32_t flags = 0)
{
  return { std::move(name), detail::known_type<T>(), flags, {} };
}
/* Describes a column with elements of a C++ type, whose rows can be null. */
template <typename T> formula_column nullable_column(std::string name, std::uint32_t flags = 0)
{
  return column<T>(std::move(name), flags | KJIT_COLUMN_NULLABLE);
}

/* The rows of a column for one computation: a container of elements in host memory and, for a
 * column with nulls, a bitmap of the rows that have a value, as in Apache Arrow. Both must outlive
 * the computation. */
class column_rows {
public:
  /* Stands for a column that the formula does not use. */
  column_rows(none_t) {}
  /* Refers to the elements from `offset` on, and to the bitmap, whose bits have the same offset. */
  template <typename R, std::enable_if_t<detail::is_range<const R>::value, int> = 0>
  column_rows(const R &values, const std::vector<std::uint8_t> *validity = nullptr,
              std::size_t offset = 0)
      : type_(detail::known_type<detail::element_of<R>>()), size_(std::size(values)),
        bitmap_bytes_(validity ? validity->size() : 0), is_set_(true)
  {
    rows_.values = const_cast<detail::element_of<R> *>(std::data(values));
    rows_.validity = validity ? const_cast<std::uint8_t *>(validity->data()) : nullptr;
    rows_.offset = detail::extent_from(offset);
  }

private:
  friend class formula;
  kjit_column rows_ = {};
  kjit_type type_ = KJIT_ANY;
  std::size_t size_ = 0, bitmap_bytes_ = 0;
  bool is_set_ = false;
};

/* The values that a formula has computed, and a bitmap of the values that are not null. */
template <typename T> struct formula_result {
  std::vector<T> values;              /* a value for each row; undefined where it is null */
  std::vector<std::uint8_t> validity; /* bitmap; empty if the formula is never null */
  /* Returns whether a row has a value. */
  bool is_valid(std::size_t row) const
  {
    return validity.empty() || ((validity[row / 8] >> (row % 8)) & 1) != 0;
  }
};

/* A checked formula such as "a * sin(b) + where(c > 0, c, 0)". It never changes, and any number of
 * threads can use it. */
class formula : public detail::owned<kjit_formula, kjit_destroy_formula> {
public:
  /* Creates an empty handle. */
  formula() = default;
  /* Checks the text of a formula over columns. An error message contains the line and column in the
   * text. */
  formula(const context &where, const std::string &text, std::vector<formula_column> columns)
      : owned(make(where, text, columns), where.keep()),
        columns_(std::make_shared<std::vector<formula_column>>(std::move(columns)))
  {
  }
  /* Returns the type of the result, its flags and the number of operators and columns. */
  kjit_formula_info info() const
  {
    kjit_formula_info found = {};
    found.size_bytes = sizeof found;
    kjit::check(kjit_get_formula_context(get()), kjit_get_formula_info(get(), &found));
    return found;
  }
  /* Returns whether the formula uses a column. */
  bool uses(std::size_t column) const
  {
    if (!get()) kjit::check(nullptr, KJIT_ERROR_MISUSE);
    return kjit_uses_column(get(), column) != 0;
  }
  /* Returns the dictionary of the result if the result consists of texts (KJIT_COLUMN_TEXT in
   * info().flags); compute then returns indices into the dictionary. Otherwise returns an empty
   * vector. */
  std::vector<std::string> texts() const
  {
    const kjit_formula_texts *found = kjit_get_formula_texts(get());
    return found ? std::vector<std::string>(found->items, found->items + found->count)
                 : std::vector<std::string>();
  }
  /* Computes the formula for all rows. rows has an entry for each column. T is the type of the
   * result, std::uint8_t for bool. Another type is rejected (TYPE), and columns of different
   * lengths are rejected (ARGUMENT). */
  template <typename T>
  formula_result<T> compute(const std::vector<column_rows> &rows,
                            kjit_formula_run options = default_run()) const
  {
    const kjit_formula_info about = info();
    if (!(about.type == KJIT_BOOL && std::is_same_v<T, std::uint8_t>))
      detail::expect_type<T>(kjit_get_formula_context(get()), about.type, "the formula computes");
    const std::size_t count = check_rows(rows);
    std::vector<kjit_column> given;
    for (const column_rows &each : rows) given.push_back(each.rows_);
    formula_result<T> result;
    result.values.resize(count);
    if (about.flags & KJIT_COLUMN_NULLABLE) result.validity.resize((count + 7) / 8);
    const kjit_column to = { result.values.data(), result.validity.data(), 0 };
    kjit::check(kjit_get_formula_context(get()),
                kjit_run_formula(get(), given.data(), &to, detail::extent_from(count), &options));
    return result;
  }
  /* Returns options with their defaults, to be changed and passed to compute. */
  static kjit_formula_run default_run()
  {
    kjit_formula_run options = {};
    options.size_bytes = sizeof options;
    return options;
  }

private:
  std::shared_ptr<std::vector<formula_column>> columns_;

  static kjit_formula *make(const context &where, const std::string &text,
                            const std::vector<formula_column> &columns)
  {
    std::vector<kjit_formula_column> described;
    std::vector<std::vector<const char *>> items;
    std::vector<kjit_formula_texts> texts;
    for (const formula_column &each : columns) {
      described.push_back({ each.name.c_str(), each.type, each.flags, 0 });
      items.emplace_back();
      for (const std::string &item : each.texts) items.back().push_back(item.c_str());
      texts.push_back({ items.back().data(), items.back().size() });
    }
    kjit_formula_options options = {};
    options.size_bytes = sizeof options;
    options.columns = described.data();
    options.column_count = static_cast<std::uint32_t>(described.size());
    options.texts = texts.data();
    return detail::create<kjit_formula>(where.get(), kjit_create_formula, where.get(), &options,
                                        text.data(), text.size());
  }
  /* Returns the number of rows, which must be the same in all used columns. */
  std::size_t check_rows(const std::vector<column_rows> &rows) const
  {
    if (rows.size() != columns_->size())
      detail::fail(KJIT_ERROR_ARGUMENT, "the formula was created with " +
                                          std::to_string(columns_->size()) + " columns, and " +
                                          std::to_string(rows.size()) + " are given");
    std::size_t count = std::numeric_limits<std::size_t>::max();
    /* A column of bits consists of whole bytes, so its size does not determine the number of rows;
     * columns of elements are read first. */
    for (const bool are_bits : { false, true })
      for (std::size_t i = 0; i < rows.size(); i++) {
        const formula_column &declared = (*columns_)[i];
        if (!uses(i) || ((declared.flags & KJIT_COLUMN_BITS) != 0) != are_bits) continue;
        const std::size_t own = check_column(rows[i], declared);
        const bool is_known = count != std::numeric_limits<std::size_t>::max();
        if (is_known && (are_bits ? own < count : own != count))
          detail::fail(KJIT_ERROR_ARGUMENT,
                       "column `" + declared.name + "` has " + std::to_string(own) +
                         " rows, and other columns have " + std::to_string(count));
        if (!is_known) count = own;
      }
    return count == std::numeric_limits<std::size_t>::max() ? 0 : count;
  }
  std::size_t check_column(const column_rows &rows, const formula_column &declared) const
  {
    const std::string what = "column `" + declared.name + "`";
    if (!rows.is_set_) detail::fail(KJIT_ERROR_ARGUMENT, "the formula uses " + what);
    const bool is_byte = declared.type == KJIT_BOOL && rows.type_ == KJIT_U8;
    if (rows.type_ != declared.type && !is_byte)
      detail::fail(KJIT_ERROR_TYPE,
                   what + " has elements of type " +
                     detail::text_of(kjit_get_formula_context(get()), rows.type_) + ", not " +
                     detail::text_of(kjit_get_formula_context(get()), declared.type));
    const std::size_t offset = static_cast<std::size_t>(rows.rows_.offset);
    const std::size_t held = declared.flags & KJIT_COLUMN_BITS ? rows.size_ * 8 : rows.size_;
    if (offset > held || (rows.rows_.validity && rows.bitmap_bytes_ < (held + 7) / 8))
      detail::fail(KJIT_ERROR_ARGUMENT, what + " has fewer elements or bits than its offset needs");
    return held - offset;
  }
};

} // namespace kjit
#endif
