// The module kjit-arrow.so: reads columns of Parquet and Arrow files with Arrow's C++ library.
#include "reader.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <cstring>
#include <exception>
#include <memory>
#include <parquet/arrow/reader.h>
#include <string>
#include <vector>

namespace {

// Base class of the readers: the schema of a file, and a function that reads a column.
class file {
public:
  virtual ~file() = default;
  virtual arrow::Result<std::shared_ptr<arrow::ChunkedArray>> read(int column) = 0;

  std::shared_ptr<arrow::Schema> schema;
};

class parquet_file : public file {
public:
  arrow::Status open(std::shared_ptr<arrow::io::RandomAccessFile> input)
  {
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(std::move(input)));
    ARROW_RETURN_NOT_OK(builder.Build(&reader));
    return reader->GetSchema(&schema);
  }
  arrow::Result<std::shared_ptr<arrow::ChunkedArray>> read(int column) override
  {
    std::shared_ptr<arrow::ChunkedArray> made;
    ARROW_RETURN_NOT_OK(reader->ReadColumn(column, &made));
    return made;
  }

private:
  std::unique_ptr<parquet::arrow::FileReader> reader;
};

// A file in Arrow's IPC format with a table of record batches at its end.
class ipc_file : public file {
public:
  arrow::Status open(std::shared_ptr<arrow::io::RandomAccessFile> given)
  {
    input = std::move(given);
    ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(input));
    schema = reader->schema();
    return arrow::Status::OK();
  }
  arrow::Result<std::shared_ptr<arrow::ChunkedArray>> read(int column) override
  {
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.included_fields = { column };
    ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchFileReader::Open(input, options));
    arrow::ArrayVector chunks;
    for (int i = 0; i < reader->num_record_batches(); i++) {
      ARROW_ASSIGN_OR_RAISE(auto batch, reader->ReadRecordBatch(i));
      chunks.push_back(batch->column(0));
    }
    return arrow::ChunkedArray::Make(std::move(chunks), schema->field(column)->type());
  }

private:
  std::shared_ptr<arrow::io::RandomAccessFile> input;
};

// A stream in Arrow's IPC format. Each column is read from the beginning of the stream.
class ipc_stream : public file {
public:
  arrow::Status open(std::shared_ptr<arrow::io::RandomAccessFile> given)
  {
    input = std::move(given);
    ARROW_RETURN_NOT_OK(input->Seek(0));
    ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchStreamReader::Open(input));
    schema = reader->schema();
    return arrow::Status::OK();
  }
  arrow::Result<std::shared_ptr<arrow::ChunkedArray>> read(int column) override
  {
    ARROW_RETURN_NOT_OK(input->Seek(0));
    ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchStreamReader::Open(input));
    arrow::ArrayVector chunks;
    for (;;) {
      ARROW_ASSIGN_OR_RAISE(auto next, reader->ReadNext());
      if (!next.batch) break;
      chunks.push_back(next.batch->column(column));
    }
    return arrow::ChunkedArray::Make(std::move(chunks), schema->field(column)->type());
  }

private:
  std::shared_ptr<arrow::io::RandomAccessFile> input;
};

// Converts string views, which can point into several buffers, because kjit-run reads only strings
// in a single buffer.
arrow::Result<std::shared_ptr<arrow::ChunkedArray>>
without_views(std::shared_ptr<arrow::ChunkedArray> column)
{
  if (column->type()->id() != arrow::Type::STRING_VIEW) return column;
  arrow::ArrayVector chunks;
  for (const auto &chunk : column->chunks()) {
    const auto &views = static_cast<const arrow::StringViewArray &>(*chunk);
    arrow::LargeStringBuilder builder;
    for (int64_t i = 0; i < views.length(); i++)
      ARROW_RETURN_NOT_OK(views.IsNull(i) ? builder.AppendNull()
                                          : builder.Append(views.GetView(i)));
    ARROW_ASSIGN_OR_RAISE(auto made, builder.Finish());
    chunks.push_back(made);
  }
  return arrow::ChunkedArray::Make(std::move(chunks), arrow::large_utf8());
}

char *copied(const std::string &text) { return strdup(text.c_str()); }

template <typename Kind>
arrow::Result<std::unique_ptr<file>> opened(std::shared_ptr<arrow::io::RandomAccessFile> input)
{
  auto made = std::make_unique<Kind>();
  ARROW_RETURN_NOT_OK(made->open(std::move(input)));
  return std::unique_ptr<file>(std::move(made));
}

arrow::Result<std::unique_ptr<file>> open_file(const char *path, const void *bytes, uint64_t size)
{
  std::shared_ptr<arrow::io::RandomAccessFile> input;
  if (bytes) {
    auto buffer = std::make_shared<arrow::Buffer>(static_cast<const uint8_t *>(bytes),
                                                  static_cast<int64_t>(size));
    input = std::make_shared<arrow::io::BufferReader>(std::move(buffer));
  } else {
    ARROW_ASSIGN_OR_RAISE(input, arrow::io::ReadableFile::Open(path));
  }
  ARROW_ASSIGN_OR_RAISE(auto first, input->ReadAt(0, 6));
  const std::string magic = first->ToString();
  if (magic.compare(0, 4, "PAR1") == 0) return opened<parquet_file>(input);
  if (magic == "ARROW1") return opened<ipc_file>(input);
  if (magic.compare(0, 4, "\xff\xff\xff\xff") == 0) return opened<ipc_stream>(input);
  return arrow::Status::Invalid("the file is neither a Parquet file nor an Arrow file");
}

// Calls an action that returns a status. Catches exceptions, because Arrow's Parquet reader can
// throw.
template <typename Action> bool attempt(char **message, Action action)
{
  try {
    const arrow::Status status = action();
    if (!status.ok()) *message = copied(status.message());
    return status.ok();
  } catch (const std::exception &problem) {
    *message = copied(problem.what());
    return false;
  }
}

void *open_columns(const char *path, const void *bytes, uint64_t size_bytes, char **message)
{
  std::unique_ptr<file> made;
  const bool ok = attempt(message, [&] {
    ARROW_ASSIGN_OR_RAISE(made, open_file(path, bytes, size_bytes));
    return arrow::Status::OK();
  });
  return ok ? made.release() : nullptr;
}

uint64_t column_count(void *opaque)
{
  return static_cast<uint64_t>(static_cast<file *>(opaque)->schema->num_fields());
}

const char *column_name(void *opaque, uint64_t column)
{
  return static_cast<file *>(opaque)->schema->field(static_cast<int>(column))->name().c_str();
}

int read_column(void *opaque, uint64_t column, ArrowArrayStream *stream, char **message)
{
  const bool ok = attempt(message, [&] {
    ARROW_ASSIGN_OR_RAISE(auto made, static_cast<file *>(opaque)->read(static_cast<int>(column)));
    ARROW_RETURN_NOT_OK(
      made->ValidateFull()); // rejects invalid offsets and indices of damaged files
    ARROW_ASSIGN_OR_RAISE(made, without_views(std::move(made)));
    return arrow::ExportChunkedArray(std::move(made), stream);
  });
  return ok ? 0 : 1;
}

void close_columns(void *opaque) { delete static_cast<file *>(opaque); }

} // namespace

extern "C" __attribute__((visibility("default")))
const kjit_arrow_reader kjit_arrow = { KJIT_ARROW_INTERFACE, open_columns, column_count,
                                       column_name,          read_column,  close_columns };
