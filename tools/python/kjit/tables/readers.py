"""Reads the files of a pyarrow dataset in batches with bounded memory. The scanner of a whole
dataset reads ahead without a limit; therefore Parquet files are scanned one row group at a time,
and CSV files are read by pyarrow's incremental reader."""


def batches_of(dataset, columns, rows):
    """Yields RecordBatches with the dataset types. columns: the names to read, None for all."""
    for fragment in dataset.get_fragments():
        if _is_plain_csv(fragment):
            yield from _of_csv(fragment, dataset.schema, columns, rows)
        elif hasattr(fragment, "split_by_row_group"):
            for part in fragment.split_by_row_group():
                yield from _scanned(part, dataset.schema, columns, rows, _parquet_options())
        else:
            yield from _scanned(fragment, dataset.schema, columns, rows, {})


def _scanned(fragment, schema, columns, rows, options):
    ahead = {"batch_readahead": 1, "fragment_readahead": 1}
    yield from fragment.to_batches(schema=schema, columns=columns, batch_size=rows, **ahead, **options)


def _parquet_options():
    import pyarrow.dataset

    options = pyarrow.dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    return {"fragment_scan_options": options}


def _is_plain_csv(fragment):
    """Returns whether a fragment is an uncompressed CSV file that contains all columns."""
    import pyarrow.dataset

    kind = getattr(pyarrow.dataset, "CsvFileFormat", None)
    if kind is None or not isinstance(getattr(fragment, "format", None), kind):
        return False
    is_compressed = fragment.path.endswith((".gz", ".bz2", ".zst", ".lz4", ".br"))
    return str(fragment.partition_expression) == "true" and not is_compressed


def _of_csv(fragment, schema, columns, rows):
    from pyarrow import csv

    options = fragment.format.default_fragment_scan_options
    convert, read = options.convert_options, options.read_options
    convert.column_types = {field.name: field.type for field in schema}
    convert.include_columns = schema.names if columns is None else columns
    convert.include_missing_columns = True
    arguments = {"read_options": read, "parse_options": fragment.format.parse_options, "convert_options": convert}
    with fragment.open() as file, csv.open_csv(file, **arguments) as reader:
        for batch in reader:
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)
